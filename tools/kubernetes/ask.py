"""Ends with 0 where URL answers with 200: ask.py URL CA."""
import ssl
import sys
import urllib.request

url, authority = sys.argv[1:]
context = ssl.create_default_context(cafile=authority) if url.startswith("https:") else None
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
try:
    with opener.open(url, timeout=3) as answer:
        sys.exit(answer.status != 200)
except OSError:
    sys.exit(1)
