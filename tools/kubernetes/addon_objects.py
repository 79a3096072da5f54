"""What an addon's own manifests say of the API server, for a cluster whose addons run on loopback.

addon_objects.py <YAML >JSON: keeps kinds of objects and webhooks. A webhook is called at an address (@PORT@) with the
cluster's authority (@CA@), both filled in by `up`, instead of through a Service, which only a network of pods has.
"""
import json
import sys

import yaml

# Large, and no part of what Systole renders.
LEFT_OUT = ("mpijobs.kubeflow.org", "paddlejobs.kubeflow.org", "tfjobs.kubeflow.org", "xgboostjobs.kubeflow.org")
KEPT = ("Namespace", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def on_loopback(client):
    """A clientConfig with the service's path at an address."""
    path = client.get("service", {}).get("path", "/")
    return {"url": "https://127.0.0.1:@PORT@" + path, "caBundle": "@CA@"}


def changed(document):
    for webhook in document.get("webhooks", []):
        webhook["clientConfig"] = on_loopback(webhook["clientConfig"])
    conversion = document.get("spec", {}).get("conversion", {})
    if conversion.get("strategy") == "Webhook":
        conversion["webhook"]["clientConfig"] = on_loopback(conversion["webhook"].get("clientConfig", {}))
    return document


def main():
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    read = [d for d in yaml.load_all(sys.stdin, Loader=loader) if d and d["kind"] in KEPT]
    documents = [changed(d) for d in read if d["metadata"]["name"] not in LEFT_OUT]
    documents.sort(key=lambda d: KEPT.index(d["kind"]))
    json.dump({"apiVersion": "v1", "kind": "List", "items": documents}, sys.stdout)


main()
