// This device, as the rules of answers describe it.

import { plexus } from '../plexus.js';
import type { Answerer } from './actions.js';

export const answerer = (): Answerer => ({ may_approve: plexus.may('approve'), approve_up_to: plexus.me.value?.approve_up_to });
