#!/usr/bin/env python3
"""Writes episodes.json: made-up agent runs, so that the built-in classifiers are tested where no recording is.

    make_episodes.py > episodes.json
"""

import json

SHOP_POLICY = """# Shop agent policy

The current date is 2024-03-02.

As a shop agent, you can help users change an order, return an item, or look up a product.

- Before an order is changed, list the details of the change and obtain the user's explicit confirmation (yes) to proceed.
- Do not provide information or procedures that the user or the tools did not provide.
- Make one tool call at a time. While you make a tool call, do not respond to the user at the same time.
- Deny requests that are against this policy.

## Returns

- An item can be returned within 30 days after it was delivered, in its original packaging.
- The refund goes to the original payment method within 5 to 7 business days.
- Items that were bought at a discount of more than 50% cannot be returned.
"""

CODE_POLICY = """You are a careful programmer who works in a terminal.

Every answer has one thought and one command. The command is run and its output is shown to you.
Do not edit tests. When you are done, print the word DONE. You must not install packages.
"""

WEB_POLICY = """You are an assistant that answers questions by searching the web.

Use the search tool first, then open the page that fits best. Say which page the answer is from.
If the pages contradict each other, say so. Never make up a source.
"""


def call(name, **arguments):
    return {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": name, "arguments": arguments}}]}


def said(role, text):
    return {"role": role, "content": text}


def shop(order, user, item, reason):
    details = {"order_id": order, "user_id": user, "status": "delivered", "payment_id": "credit_card_4407712",
               "items": [{"name": item, "item_id": "8120554411", "price": 84.95},
                         {"name": "Water Bottle", "item_id": "3379065112", "price": 19.5}],
               "address": {"street": "14 Mill Lane", "city": "Portland", "zip": "97209", "country": "USA"}}
    return [
        said("system", SHOP_POLICY),
        said("user", f"Hi! I would like to return the {item.lower()} from my order {order}. {reason}"),
        said("assistant", "I am sorry to hear that. May I have your user id, so that I can look at the order?"),
        said("user", f"Sure, my user id is {user}."),
        call("get_order_details", order_id=order),
        said("tool", json.dumps(details)),
        said("assistant", f"Thank you. The {item.lower()} was delivered within the last 30 days, so it can be "
             "returned. The refund of $84.95 would go to your credit card ending in 7712. Do you want to proceed (yes)?"),
        said("user", "Yes, please go ahead. And how long will the refund take?"),
        call("return_order_items", order_id=order, item_ids=["8120554411"], payment_id="credit_card_4407712"),
        said("tool", json.dumps({"order_id": order, "status": "return requested", "refund": 84.95})),
        said("assistant", "The return is confirmed. The refund will arrive in 5 to 7 business days. "
             "Is there anything else I can help you with?"),
        said("user", "No, that is all. Thank you!"),
    ]


def code(module, function):
    listing = "\n".join(f"-rw-r--r-- 1 dev dev {1200 + 37 * i} Mar  2 10:1{i % 10} {name}.py"
                        for i, name in enumerate(["__init__", module, "config", "errors", "cli", "paths", "store"]))
    source = f"""import os


def {function}(path, mode=None):
    \"\"\"Opens what the path names and returns its lines.\"\"\"
    if mode is None:
        mode = "r"
    with open(path, mode) as stream:
        lines = stream.readlines()
    return [line for line in lines if line.strip()]


def main():
    for name in os.listdir("."):
        print(name, len({function}(name)))
"""
    return [
        said("system", CODE_POLICY),
        said("user", f"The function {function} in {module}.py fails on folders. Make it skip them, and return an "
             "empty list for a file that does not exist."),
        call("bash", command="ls -l src/"),
        said("tool", listing),
        said("assistant", "The module is small. Let me look at the function before I change it."),
        call("bash", command=f"cat src/{module}.py"),
        said("tool", source),
        said("assistant", f"I will use os.path.isfile before the file is opened. Decision: {function} returns an empty "
             "list when there is no regular file."),
        call("edit", path=f"src/{module}.py", insert=f"    if not os.path.isfile(path):\n        return []\n", line=5),
        said("tool", f"src/{module}.py: 2 lines were inserted."),
        call("bash", command="python -m pytest -q tests/"),
        said("tool", f"tests/test_{module}.py ........ [100%]\n8 passed in 0.41s"),
        said("assistant", "All tests pass. DONE"),
    ]


def web(question, answer, city):
    page = "\n".join(f"{city} has been described in many guides over the years, and paragraph {i} of this one goes on about "
                     "its streets, its markets and the weather, which is mild in spring and often wet in autumn."
                     for i in range(1, 8))
    return [
        said("system", WEB_POLICY),
        said("user", question),
        call("search", query=question),
        said("tool", f"1. {city} - a guide for visitors\n   https://guides.example.org/{city.lower()}\n"
             f"2. History of {city}\n   https://history.example.org/{city.lower()}/bridges\n3. Weather in {city} today"),
        said("assistant", "The second result is about bridges. I will open it."),
        call("open_page", url=f"https://history.example.org/{city.lower()}/bridges"),
        said("tool", f"{page}\n{answer}\n{page}"),
        said("assistant", f"{answer} The answer is from history.example.org."),
        said("user", "Thanks. Is that older than the town hall?"),
        said("assistant", "The page does not say when the town hall was built, so I cannot tell."),
    ]


def main():
    episodes = [
        shop("#W4082615", "dana_lopez_6519", "Running Shoes", "They are one size too small."),
        shop("#W7751203", "omar_khan_2208", "Desk Lamp", "It does not turn on at all."),
        code("reader", "read_lines"),
        code("loader", "load_rows"),
        web("In which year was the old stone bridge in Marlow rebuilt?", "The stone bridge was rebuilt in 1832.", "Marlow"),
        web("Who designed the railway bridge in Linden?", "The railway bridge was designed by Clara Voss in 1889.", "Linden"),
    ]
    print(json.dumps([{"messages": messages} for messages in episodes], indent=1))


if __name__ == "__main__":
    main()
