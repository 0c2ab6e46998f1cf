// A ceiling as users read and write it: `5 USD, 2,000,000 tokens`. Pure.
import type { Ceiling } from '../wire/types.js';

/** Maximum number of tokens of a ceiling. */
const TOKENS_MAX = 2 ** 40;
/** Maximum amount of money of a ceiling, in any currency. */
const MONEY_MAX = 1e9;
const UNITS: Readonly<Record<string, number>> = { '': 1, k: 1000, K: 1000, M: 1_000_000 };

/** A ceiling in words; empty if there is none. */
export function ceilingText(ceiling: Ceiling): string {
  const costs = (ceiling.costs ?? []).map(({ amount, currency }) => `${amount.toFixed(amount < 0.995 && amount > 0 ? 4 : 2)} ${currency}`);
  return [...costs, ...(ceiling.tokens ? [`${ceiling.tokens.toLocaleString('en').replaceAll(',', '_')} tokens`] : [])].join(', ');
}

/** Parses a typed ceiling; an empty text is no ceiling, null is an invalid one. */
export function readCeiling(words: string): Ceiling | null {
  const read: { tokens?: number; costs?: { amount: number; currency: string }[] } = {};
  if (!words.trim()) return read;
  for (const part of words.split(',')) {
    const [, figure, unit] = /^\s*(\S+)\s+(\S+)\s*$/.exec(part) ?? [];
    if (!figure || !unit) return null;
    if (unit.toLowerCase() === 'tokens') {
      const [, digits, times] = /^([0-9_]+)([kKM]?)$/.exec(figure) ?? [];
      const count = Number(digits?.replaceAll('_', '')) * (UNITS[times ?? ''] ?? 1);
      if (!digits || !(count >= 1 && count <= TOKENS_MAX) || read.tokens !== undefined) return null;
      read.tokens = count;
      continue;
    }
    const [amount, currency] = [Number(figure), unit.toUpperCase()];
    if (!/^[0-9.]+$/.test(figure) || !(amount > 0 && amount <= MONEY_MAX) || !/^[A-Z]{3}$/.test(currency) || read.costs?.some((one) => one.currency === currency)) return null;
    read.costs = [...(read.costs ?? []), { amount, currency }];
  }
  return read;
}
