// The verbs, keys and guards of answers. Made by `scripts/web build` from crates/protocol/src/answers.rs: not to be edited.
export const answers = {
  "roles": {
    "allow_once": {
      "verb": "Allow once",
      "outcome": "Allowed once",
      "sense": "allow",
      "key": "a",
      "primary": true,
      "lasting": false
    },
    "send": {
      "verb": "Send answer",
      "outcome": "Answered",
      "sense": "allow",
      "key": "a",
      "primary": true,
      "lasting": false
    },
    "choose": {
      "verb": "Answer",
      "outcome": "Answered",
      "sense": "allow",
      "key": null,
      "primary": false,
      "lasting": false
    },
    "deny": {
      "verb": "Deny",
      "outcome": "Denied",
      "sense": "deny",
      "key": "d",
      "primary": false,
      "lasting": false
    },
    "skip": {
      "verb": "Skip",
      "outcome": "Skipped",
      "sense": "deny",
      "key": "d",
      "primary": false,
      "lasting": false
    },
    "later": {
      "verb": "Decide at the desk",
      "outcome": "Left open",
      "sense": "defer",
      "key": null,
      "primary": false,
      "lasting": false
    },
    "allow_always": {
      "verb": "Always allow",
      "outcome": "Always allowed",
      "sense": "allow",
      "key": "A",
      "primary": false,
      "lasting": true
    },
    "allow_session": {
      "verb": "Allow for this session",
      "outcome": "Allowed for this session",
      "sense": "allow",
      "key": "A",
      "primary": false,
      "lasting": true
    },
    "deny_always": {
      "verb": "Always deny",
      "outcome": "Always denied",
      "sense": "deny",
      "key": null,
      "primary": false,
      "lasting": true
    }
  },
  "unavailable": {
    "observe_only": "This can only be viewed here. Answer it where the agent runs.",
    "scope": "This device may watch but not answer. An administrator can allow it under Devices.",
    "risk": "Too risky for this device. Deny it here, or allow it at your computer.",
    "lasting": "This device may allow up to a risk level only, so it cannot allow permanently. Allow it once."
  },
  "keys": [
    [
      "a",
      "allow once, or send the answer"
    ],
    [
      "d",
      "deny, or skip"
    ],
    [
      "A",
      "always allow; a second press confirms"
    ],
    [
      "e",
      "edit, then allow the edited version once"
    ],
    [
      "r",
      "add a reason, then deny"
    ],
    [
      "1 … 9",
      "the answer or choice that shows this number"
    ]
  ],
  "labelMax": 80,
  "guardMs": 400
} as const;
