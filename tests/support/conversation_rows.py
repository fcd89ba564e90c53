"""One row of each set of conversations, in its own form."""

from __future__ import annotations

import json

SCHEMA = {"name": "get weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TOOLACE = {
    "system": "You know functions. Here is a list of functions in JSON format that you can invoke:\n"
    f"{json.dumps([SCHEMA])}. \nShould you return calls, write [f(x=1)]. \nNO other text.",
    "conversations": [
        {"from": "user", "value": "How warm is it in Oslo?"},
        {"from": "assistant", "value": "[get weather(city=\"Oslo, 'N'\", days=[1, 2], hourly=true), get weather()]"},
        {"from": "tool", "value": '[{"warm": 3}]'},
        {"from": "assistant", "value": "3 degrees."},
    ],
}
APIGEN = {
    "system": "# Policy\nBe kind.",
    "tools": json.dumps([SCHEMA]),
    "conversations": [
        {"from": "human", "value": "How warm is it?"},
        {"from": "function_call", "value": '{"name": "get weather", "arguments": {"city": "Oslo"}}'},
        {"from": "observation", "value": "3"},
        {"from": "gpt", "value": "3 degrees."},
        {"from": "human", "value": "###STOP###"},
    ],
}
GLAIVE = {
    "system": f"SYSTEM: You are helpful. Use them if required -\n{json.dumps(SCHEMA)}\n{json.dumps(SCHEMA)}\n",
    "chat": "USER: How warm is it in O'Hare?\n\n\nASSISTANT: <functioncall> "
    '{"name": "get weather", "arguments": \'{"city": "O\\\'Hare"}\'} <|endoftext|>\n\n\n'
    'FUNCTION RESPONSE: {"warm": 3}\n\n\nASSISTANT: 3 degrees. <|endoftext|>\n\n\nUSER: Thanks.\n\n\n'
    "ASSISTANT: You are welcome! <|endoftext|>",
}
MAGICODER = {"instruction": "Add 1 and 2.", "response": "Here:\n```python\nprint(1 + 2)\n```\nIt prints 3."}
TULU = {"messages": [{"role": "user", "content": "Answer in one word."}, {"role": "assistant", "content": "Yes."}]}
NEMOTRON = {
    "input": [{"role": "user", "content": "Hello?"}],
    "output": "Hello!",
    "reasoning": "off",
    "system_prompt": "",
}
