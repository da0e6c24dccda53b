"""A small MCP server on stdio, of the standard library alone."""

import json
import socket
import sys

try:
    from dockgate_test_words import GREETING  # what the package needs
except ImportError:
    GREETING = "nothing beside me, "

TOOLS = [
    {"name": "greet", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    {"name": "reach", "inputSchema": {"type": "object", "properties": {"host": {"type": "string"}, "port": {"type": "integer"}}}},
]


def call(name, arguments):
    if name == "greet":
        return GREETING + arguments["name"] + " " + " ".join(sys.argv[1:])
    try:
        socket.create_connection((arguments["host"], arguments["port"]), timeout=10).close()
    except OSError as problem:
        return "unreachable: %s" % problem
    return "reached"


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "greeter", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": call(params["name"], params.get("arguments", {}))}]}
    if method == "ping":
        return {}
    return None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        result = answer(message["method"], message.get("params", {}))
        if result is None:
            reply["error"] = {"code": -32601, "message": "no method " + message["method"]}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
