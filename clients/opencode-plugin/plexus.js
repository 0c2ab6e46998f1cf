// Written by `plexus link opencode`; `plexus link opencode --remove` deletes it.
export const Plexus = async () => ({});
