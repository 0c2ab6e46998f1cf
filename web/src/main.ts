// The page's first script. It is small, so that it runs while the others are still on their way: it takes the secret of a sign-in link from
// the address, asks the gateway for what is shown first, and loads the page that the address names together with the frame around it.
import { askEarly, keptSignIn } from './lib/early.js';
import { linkAtStart } from './lib/signin-link.js';
import { load } from './ui/pages.js';
import { firstOf } from './wire/paths.js';
import { parseRoute } from './wire/route.js';

const route = parseRoute(location.hash);
if (!linkAtStart) askEarly(...firstOf(route));
load(linkAtStart || !keptSignIn() ? 'signin' : route.page);
void import('./page.js');
