"""HTML as a tree, so that all text and attributes are escaped by the standard library, never by hand."""

from __future__ import annotations

import base64
import hashlib
from xml.etree.ElementTree import Element, tostring

Child = Element | str


def tag(name: str, /, *children: Child, **attributes: str) -> Element:
    """Return an element; `class_` and `aria_label` stand for `class` and `aria-label`."""
    element = Element(name, {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + child
        else:
            element.text = (element.text or "") + child
    return element


def document(root: Element) -> str:
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n"


def script(source: str) -> Element:
    """Return a script element; ValueError: the source would close it early (HTML, "script data" states)."""
    if any(end in source.lower() for end in ("</script", "<script", "<!--")):
        raise ValueError("a script must contain no script tag and no HTML comment")
    return tag("script", source)


def policy(style: Element, *scripts: Element) -> Element:
    """Return a policy that allows only this style, these scripts and no requests (Content Security Policy Level 3)."""
    allowed = " ".join(_digest(each.text or "") for each in scripts) or "'none'"
    rules = (
        "default-src 'none'",
        f"script-src {allowed}",
        f"style-src {_digest(style.text or '')}",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return tag("meta", http_equiv="Content-Security-Policy", content="; ".join(rules))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
