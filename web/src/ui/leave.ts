import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { signOut } from '../wire/gateway.js';
import { confirm } from './dialog.js';

const t = text.shell;

/** Signs this browser out, after asking. */
export async function leave(): Promise<void> {
  const me = plexus.me.peek();
  const own = me?.kind === 'device';
  if (own && !(await confirm(t.signOutAsk, t.signOutWhy, t.signOut, true))) return;
  // A share link and this machine's own token stay valid; only this tab forgets them.
  if (own) await plexus.http('DELETE', '/v1/me').catch(() => {});
  history.replaceState(null, '', location.pathname);
  signOut(t.signin.out);
}
