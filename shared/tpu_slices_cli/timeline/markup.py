"""HTML as a tree: text and attributes are escaped by the writer of the standard library, nowhere by hand."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from xml.etree.ElementTree import Element, tostring

Child = Element | str


def tag(name: str, /, *children: Child, **attributes: str) -> Element:
    """Give an element; `class_` and `aria_label` stand for `class` and `aria-label`."""
    made = Element(name, {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + child
        else:
            made.text = (made.text or "") + child
    return made


def document(root: Element) -> str:
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n"


def script(source: str) -> Element:
    """Give a script of our own; a ValueError where it would end before its end (HTML, "script data" states)."""
    if any(end in source.lower() for end in ("</script", "<script", "<!--")):
        raise ValueError("a script must hold no tag of a script and no comment of HTML")
    return tag("script", source)


def data(value: Any, id_: str) -> Element:
    """Give JSON for a script to read; no character of it can end the element, whatever a tenant wrote."""
    text = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")
    return tag("script", text, type="application/json", id=id_)


def policy(*scripts: Element) -> Element:
    """Let only these scripts run, and nothing be fetched from anywhere (Content Security Policy Level 3)."""
    rules = (
        "default-src 'none'",
        f"script-src {' '.join(_digest(each.text or '') for each in scripts)}",
        "style-src 'unsafe-inline'",  # plotly.js sets styles as it draws
        "img-src data: blob:",  # and makes the picture that a reader saves
        "base-uri 'none'",
        "form-action 'none'",
    )
    return tag("meta", http_equiv="Content-Security-Policy", content="; ".join(rules))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
