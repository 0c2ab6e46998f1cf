// Written by `plexus link copilot`; `plexus link copilot --remove` deletes it.
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({});
