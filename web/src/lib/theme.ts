import { signal } from './signal.js';

export type Theme = 'auto' | 'light' | 'dark';
const KEY = 'plexus.theme';
const ORDER: readonly Theme[] = ['auto', 'light', 'dark'];

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'auto';
  } catch { return 'auto'; }
}

export const theme = signal<Theme>(stored());

function show(value: Theme): void {
  if (value === 'auto') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.dataset['theme'] = value;
}
show(theme.peek());

export function setTheme(value: Theme): void {
  theme.value = value;
  show(value);
  try { if (value === 'auto') localStorage.removeItem(KEY); else localStorage.setItem(KEY, value); } catch { /* storage is off: it lasts as long as the page */ }
}

export const nextTheme = (): Theme => ORDER[(ORDER.indexOf(theme.peek()) + 1) % ORDER.length] ?? 'auto';
