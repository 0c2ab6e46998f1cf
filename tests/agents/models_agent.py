"""An ACP agent that offers many models in every session, and may be asked for trouble. A prompt's text says what it does:

    ask N     asks N questions at once, and ends when all are answered
    hang      never ends by itself
    TEXT      says TEXT

MODELS in the environment says how many models there are. While the file NEVER exists, a session in a folder whose name
contains `stuck` is never opened. How often each method was called is appended to the file CALLS, where that is set.
"""

import json
import os
import sys

MODELS = [
    {"modelId": f"vendor/model-{n:04}", "name": f"Model number {n:04} of a vendor"} for n in range(int(os.environ.get("MODELS", "300")))
]
sessions = 0
asked = {}
next_id = 0


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session, text):
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    say({"method": "session/update", "params": {"sessionId": session, "update": chunk}})


def opened(session):
    models = {"currentModelId": "vendor/model-0000", "availableModels": MODELS}
    return {"sessionId": session, **({"models": models} if MODELS else {})}


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method and os.environ.get("CALLS"):
        with open(os.environ["CALLS"], "a") as calls:
            calls.write(method + "\n")
    if method == "initialize":
        can = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
        info = {"name": "modelled", "version": "1"}
        say({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": can, "agentInfo": info}})
    elif method in ("session/new", "session/resume", "session/load"):
        if "stuck" in params["cwd"] and os.path.exists(os.environ.get("NEVER", "")):
            continue
        sessions += 1
        session = params.get("sessionId") or f"m{os.getpid()}-{sessions}"
        say({"id": message["id"], "result": opened(session)})
    elif method == "session/prompt":
        session, text = params["sessionId"], params["prompt"][0]["text"]
        if text.startswith("ask "):
            asked[session] = (message["id"], set())
            for n in range(int(text[4:])):
                next_id += 1
                asked[session][1].add(next_id)
                options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]
                call = {"toolCallId": f"{session}-{n}", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}
                say({"id": next_id, "method": "session/request_permission", "params": {"sessionId": session, "toolCall": call, "options": options}})
        elif text != "hang":
            update(session, text)
            say({"id": message["id"], "result": {"stopReason": "end_turn"}})
    elif method is None and "id" in message:
        for session, (prompt, waiting) in list(asked.items()):
            waiting.discard(message["id"])
            if not waiting:
                del asked[session]
                say({"id": prompt, "result": {"stopReason": "end_turn"}})
