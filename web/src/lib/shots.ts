// Pictures that go with a prompt.

/** The largest picture that may be added, bytes. In base64 it is a third more, and a prompt has 8 MiB at most. */
const IMAGE_MAX = 5 << 20;
/** The types that agents take. */
export const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** A picture of a prompt; `url` shows it until it is revoked. */
export interface Shot { mime: string; data: string; url: string }

/** Reads the pictures among the files, each when it is there. Returns whether one was too large. */
export function readShots(files: Iterable<File>, add: (shot: Shot) => void): boolean {
  let tooBig = false;
  for (const file of files) {
    if (!IMAGES.includes(file.type)) continue;
    if (file.size > IMAGE_MAX) { tooBig = true; continue; }
    const reader = new FileReader();
    reader.onload = () => add({ mime: file.type, data: String(reader.result).split(',')[1] ?? '', url: URL.createObjectURL(file) });
    reader.readAsDataURL(file);
  }
  return tooBig;
}

/** The pictures of a paste. */
export const pasted = (event: ClipboardEvent): File[] => [...(event.clipboardData?.files ?? [])].filter((file) => IMAGES.includes(file.type));

/** The body of a prompt. */
export function promptBody(text: string, shots: readonly Shot[]): { text: string } | { content: Array<{ [name: string]: string }> } {
  if (!shots.length) return { text };
  return { content: [...(text ? [{ type: 'text', text }] : []), ...shots.map((shot) => ({ type: 'image', mimeType: shot.mime, data: shot.data }))] };
}
