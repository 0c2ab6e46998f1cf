// The wire types of surfaces, and the limits that the page holds even if the gateway did not.
import type { Json } from '../wire/types.js';

export type { Json };

/** A component of A2UI. All of its properties are the agent's, and unchecked. */
export interface Component { readonly id: string; readonly component: string; readonly [property: string]: unknown }

/** An A2UI v0.9 message. */
export interface Message {
  version?: string;
  createSurface?: { surfaceId?: string; catalogId?: string; [more: string]: unknown };
  updateComponents?: { surfaceId?: string; components?: unknown };
  /** `append` is an extension: the array at `path` grows by it. */
  updateDataModel?: { surfaceId?: string; path?: string; value?: Json; append?: Json };
  deleteSurface?: { surfaceId?: string };
}

/** The open question of a surface: pressing a component of `submit` answers it. */
export interface Ask { request_id: string; submit: string[] }

/** A whole surface: its messages in compact form. */
export interface Surface {
  surface: string;
  rev: number;
  title?: string;
  pinned?: boolean;
  /** The time of the last change, RFC 3339. */
  at?: string;
  ask?: Ask | null;
  /** The agent removed it; the rest is as it last was. */
  closed?: boolean;
  messages: Message[];
}

/** A change of a surface: of revision `base`, or the whole surface if it has no `base`. */
export type Change = Partial<Omit<Surface, 'surface' | 'rev'>> & { surface: string; rev: number; base?: number };

/** The action that a screen sends for a press of the user. */
export interface Action {
  surface: string;
  rev: number;
  component: string;
  event: string;
  /** Values of the inputs that the person changed, by absolute JSON Pointer. */
  inputs: { [pointer: string]: Json };
  /** The list item in which the component stands, by absolute JSON Pointer. */
  instance?: string;
  /** The index of a table's row, or the path of a file. */
  item?: number | string;
}

/** Maximum number of components of a surface. */
export const COMPONENTS_MAX = 256;
/** Deepest nesting of components, and of data. */
export const DEPTH_MAX = 50;
/** Maximum number of components drawn at once, where those of list items count each. */
export const DRAWN_MAX = 5_000;
/** Maximum number of items of a list template that are drawn. */
export const ITEMS_MAX = 1_000;
/** Maximum number of rows of a table. */
export const ROWS_MAX = 10_000;
/** Maximum length of a string, in characters. */
export const STRING_MAX = 1_048_576;
/** Maximum number of calls of functions while one value is resolved. */
export const CALLS_MAX = 1_000;
/** Maximum length of a component's text that is shown, in characters. */
export const SHOWN_MAX = 20_000;
/** Maximum length of a title, in characters. */
export const TITLE_MAX = 200;
/** Maximum length of a regular expression, in characters. */
export const PATTERN_MAX = 1_000;
/** Maximum length of a text that the page matches against a regular expression, in characters; the gateway checks longer ones. */
export const MATCHED_MAX = 1_000;
