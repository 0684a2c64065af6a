"""One of everything that a server can offer, and every request that lists or names it."""

from __future__ import annotations


def greet(name: str) -> str:
    """Greet somebody."""
    return name


def offer(server, name, **policies):
    """Offer a tool, a prompt, a resource and a template, all called *name*, with completers."""
    server.tool(name=name, **policies)(lambda: "done")
    server.prompt(name=name, **policies)(greet)
    server.resource(f"{name}://one", **policies)(lambda: "done")
    server.resource(f"{name}://all/{{name}}", **policies)(greet)
    server.complete(name, "name")(lambda value, arguments: [value])
    server.complete(f"{name}://all/{{name}}", "name")(lambda value, arguments: [value])


LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


def uses(name):
    """Give every request that names something."""
    argument = {"name": "name", "value": "x"}
    return [
        ("tools/call", {"name": name}),
        ("prompts/get", {"name": name, "arguments": {"name": "x"}}),
        ("resources/read", {"uri": f"{name}://one"}),
        ("resources/read", {"uri": f"{name}://all/x"}),
        *(("completion/complete", {"ref": ref, "argument": argument}) for ref in refs(name)),
    ]


def wrong_uses(name):
    """Give requests that name something and are wrong besides."""
    return [
        ("tools/call", {"name": name, "arguments": {"other": 1}}),
        ("prompts/get", {"name": name}),
        ("prompts/get", {"name": name, "arguments": {"other": "x"}}),
        ("resources/read", {"uri": f"{name}://all/%2e%2e%2fx"}),
        ("resources/read", {"uri": f"{name}://other"}),
        *(("completion/complete", {"ref": ref, "argument": {}}) for ref in refs(name)),
        *(
            ("completion/complete", {"ref": ref, "argument": {"name": "other", "value": ""}})
            for ref in refs(name)
        ),
    ]


def refs(name):
    """Give what completion calls the prompt and the template."""
    template = f"{name}://all/{{name}}"
    return [{"type": "ref/prompt", "name": name}, {"type": "ref/resource", "uri": template}]


async def listed(asking):
    """Give the names that each list shows."""
    found = []
    for method, (member, key) in LISTS.items():
        page = (await asking.ask(method, {}))["result"][member]
        found.append([each[key].partition(":")[0] for each in page])

    return found


def code_of(message):
    """Give the code of the error, 0 for a result."""
    return message.get("error", {}).get("code", 0)
