import { html } from 'lit';
import { customElement } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { plexus } from '../plexus.js';

@customElement('plexus-app')
export class PlexusApp extends PlexusElement {
  override render() {
    return html`<main>${plexus.link.value.phase}</main>`;
  }
}
