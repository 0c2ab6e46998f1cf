import { css, html, nothing } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { icon, type Icon } from './icons.js';

export interface MenuItem { label: string; icon?: Icon; run?: () => void; href?: string; danger?: boolean; disabled?: boolean; separate?: boolean; checked?: boolean;
  /** With `checked`: it is switched by itself, not one of several. */
  toggle?: boolean;
  /** Text of somebody else, quoted below the label. */
  note?: string;
  /** A name for scripts. */
  id?: string }

/** A button with a menu: `<plexus-menu label=.. .items=${() => [..]}>`; the items are asked for when it opens. Arrow keys, Home, End, letters and Escape work as in system menus. */
@customElement('plexus-menu')
export class PlexusMenu extends PlexusElement {
  @property() label = '';
  #items: MenuItem[] | (() => MenuItem[]) = [];
  @property() icon: Icon = 'more';
  @property({ type: Boolean, attribute: 'show-label' }) showLabel = false;
  @property({ state: true, attribute: false }) private shown = false;

  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: inline-block; }
    [popover] {
      position: fixed; inset: auto; margin: 0; padding: 4px; min-width: 190px; max-width: min(320px, 94vw); max-height: 70dvh; overflow: auto;
      border: 1px solid var(--line-strong); border-radius: var(--r-m); background: var(--bg-raised); color: var(--fg); box-shadow: var(--shadow-2);
    }
    .item { display: flex; width: 100%; justify-content: flex-start; gap: 9px; border: 0; background: none; font-weight: 450; padding: 0 9px; color: var(--fg); text-decoration: none; border-radius: var(--r-s); min-height: 32px; align-items: center; }
    .item svg { color: var(--fg-mute); flex: none; }
    .item:hover, .item:focus-visible { background: var(--bg-hover); outline-offset: -2px; }
    .item.danger, .item.danger svg { color: var(--danger); }
    .sep { height: 1px; margin: 4px 0; background: var(--line); }
    .tick { margin-left: auto; }
    .noted { display: grid; justify-items: start; padding: 5px 0; min-width: 0; text-align: start; }
    .noted small { max-width: 100%; overflow: hidden; text-overflow: ellipsis; color: var(--fg-mute); font-size: var(--t-xs); font-weight: 400; }
    @media (pointer: coarse) { .item { min-height: 42px; } }
  `];

  get items(): MenuItem[] | (() => MenuItem[]) { return this.#items; }
  /** Other items are drawn only if they are seen: lists give each of their rows a menu with every change. */
  set items(items: MenuItem[] | (() => MenuItem[])) {
    this.#items = items;
    if (this.shown) this.requestUpdate();
  }

  override render() {
    const items = !this.shown ? [] : typeof this.#items === 'function' ? this.#items() : this.#items;
    return html`<button class="ghost ${this.showLabel ? '' : 'icon'}" aria-haspopup="menu" aria-expanded=${this.shown} aria-label=${this.label} @click=${this.#toggle}>${icon(this.icon)}${this.showLabel ? this.label : nothing}</button>
      <div popover="auto" role="menu" aria-label=${this.label} @toggle=${this.#toggled} @keydown=${this.#key}>
        ${items.map((item) => html`${item.separate ? html`<div class="sep" role="separator"></div>` : nothing}${item.href
          ? html`<a class="item" role="menuitem" tabindex="-1" href=${item.href} @click=${this.hide}>${item.icon ? icon(item.icon) : nothing}${item.label}</a>`
          : html`<button class="item ${item.danger ? 'danger' : ''}" data-item=${item.id ?? nothing} role=${item.checked === undefined ? 'menuitem' : item.toggle ? 'menuitemcheckbox' : 'menuitemradio'} aria-checked=${item.checked === undefined ? nothing : item.checked} tabindex="-1" ?disabled=${item.disabled}
              @click=${() => { this.hide(); item.run?.(); }}>${item.icon ? icon(item.icon) : nothing}${item.note ? html`<span class="noted">${item.label}<small title=${item.note}>“<bdi>${item.note}</bdi>”</small></span>` : item.label}${item.checked ? html`<span class="tick">${icon('check', 14)}</span>` : nothing}</button>`}`)}
      </div>`;
  }

  get #popover(): HTMLElement | null { return this.renderRoot.querySelector('[popover]'); }
  hide = () => this.#popover?.hidePopover();

  #toggle = () => { if (this.shown) this.hide(); else this.#popover?.showPopover(); };

  #toggled = (event: Event) => {
    this.shown = (event as ToggleEvent).newState === 'open';
    if (!this.shown) return;
    void this.updateComplete.then(() => {
      const pop = this.#popover;
      const at = this.renderRoot.querySelector('button')?.getBoundingClientRect();
      if (!pop || !at) return;
      const box = pop.getBoundingClientRect();
      const left = Math.max(8, Math.min(at.right - box.width, innerWidth - box.width - 8));
      const below = at.bottom + 4;
      const top = below + box.height > innerHeight - 8 ? Math.max(8, at.top - box.height - 4) : below;
      pop.style.left = `${left}px`;
      pop.style.top = `${top}px`;
      this.#all()[0]?.focus();
    });
  };

  #all = () => [...this.renderRoot.querySelectorAll<HTMLElement>('.item:not([disabled])')];

  #key = (event: KeyboardEvent) => {
    const all = this.#all();
    const at = all.indexOf(this.shadowRoot?.activeElement as HTMLElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Escape') { this.hide(); this.renderRoot.querySelector('button')?.focus(); event.preventDefault(); event.stopPropagation(); return; }
    if (event.key === 'Tab') { this.hide(); return; }
    const found = to ?? (event.key.length === 1 ? all.findIndex((one) => one.textContent?.trim().toLowerCase().startsWith(event.key.toLowerCase())) : -1);
    if (found < 0) return;
    event.preventDefault();
    event.stopPropagation();
    all[found]?.focus();
  };
}
