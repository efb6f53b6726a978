# SPDX-License-Identifier: MIT
"""Checks deploy/serving against the schemas of Kubernetes and KServe, and against each other: check_manifests.py

They show TS-7.
"""
import os
import sys
import traceback

import kserve
import kubernetes_validate
import yaml

DEPLOY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "deploy", "serving")


def read(path):
    with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
        return yaml.safe_load(file)


def check_by_kubernetes(manifest):
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_ts7_manifests_of_kubernetes_are_valid():
    for name in ("deployment.yaml", "service.yaml"):
        check_by_kubernetes(read(name))


def check_by_kserve(path, value, kind):
    """By the fields and types of KServe's Python client. Containers and metadata are Kubernetes' own."""
    if kind.startswith("list["):
        assert isinstance(value, list), f"{path} is not a list"
        for i, item in enumerate(value):
            check_by_kserve(f"{path}[{i}]", item, kind[len("list["):-1])
    elif kind == "V1Container":
        check_by_kubernetes({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"},
                             "spec": {"containers": [value]}})
    elif hasattr(kserve, kind):
        fields = {name: attribute for attribute, name in getattr(kserve, kind).attribute_map.items()}
        for name, item in value.items():
            assert name in fields, f"KServe's {kind} has no {path}.{name}"
            check_by_kserve(f"{path}.{name}", item, getattr(kserve, kind).openapi_types[fields[name]])
    elif kind in ("int", "str", "bool"):
        assert type(value).__name__ == kind, f"{path} is {value!r}, which is no {kind}"
    else:
        assert kind == "V1ObjectMeta", f"{path}: {kind} is not checked"


def test_ts7_manifests_of_kserve_are_valid():
    for name, kind in (("inference-service.yaml", "V1beta1InferenceService"),
                       ("serving-runtime.yaml", "V1alpha1ServingRuntime")):
        check_by_kserve(name, read(name), kind)


def test_ts7_the_service_finds_the_pods_and_is_found():
    deployment, service = read("deployment.yaml"), read("service.yaml")
    monitor = read("service-monitor.yaml")
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert {end["port"] for end in monitor["spec"]["endpoints"]} <= {port["name"] for port in service["spec"]["ports"]}


def test_ts7_the_inference_service_has_a_runtime():
    model = read("inference-service.yaml")["spec"]["predictor"]["model"]
    runtime = read("serving-runtime.yaml")
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["modelFormat"]["name"] in [known["name"] for known in runtime["spec"]["supportedModelFormats"]]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]


def main():
    failures = 0
    for name, test in [item for item in globals().items() if item[0].startswith("test_")]:
        try:
            test()
            print(f"{name}: passed")
        except Exception as error:  # pylint: disable=broad-except
            failures += 1
            print(f"{name}: {type(error).__name__}: {error}")
            traceback.print_exc()
    return 1 if failures > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
