#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# deploy/kubernetes is consistent (MM-7): the job has the fields of an MPIJob of kubeflow.org/v2beta1 and no others, starts
# as many ranks as it has slots, and agrees with the Dockerfile about user, port and folders. Without a cluster, this is
# what can be checked.
set -euo pipefail
cd "$(dirname "$0")/../../deploy/kubernetes"

python3 -c 'import yaml' 2>/dev/null || { echo "skipped: python3-yaml is missing"; exit 77; }
python3 - <<'END'
import re
import yaml

job = yaml.safe_load(open("train.yaml"))
dockerfile = open("Dockerfile").read()
spec, launcher, worker = job["spec"], *(job["spec"]["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker"))


def only(what, given, known):
    assert set(given) <= set(known), f"{what}: unknown fields {set(given) - set(known)}"


assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
only("spec", spec, ["slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath",
                    "launcherCreationPolicy", "mpiImplementation"])
only("runPolicy", spec["runPolicy"], ["cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
                                      "backoffLimit", "schedulingPolicy", "suspend", "managedBy"])
assert spec["runPolicy"]["cleanPodPolicy"] in ("None", "Running", "All")
assert spec["launcherCreationPolicy"] in ("AtStartup", "WaitForWorkersReady")
assert spec["mpiImplementation"] in ("OpenMPI", "Intel", "MPICH")
for replica in (launcher, worker):
    only("replica", replica, ["replicas", "restartPolicy", "template"])
    pod = replica["template"]["spec"]
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in pod["containers"]:
        assert volumes == {mount["name"] for mount in container.get("volumeMounts", [])}
        assert container["securityContext"]["runAsUser"] == int(re.search(r"--uid (\d+)", dockerfile)[1])
        assert all(isinstance(word, str) for word in container["command"] + container.get("args", []))

start, listen = (replica["template"]["spec"]["containers"][0] for replica in (launcher, worker))
assert int(start["command"][start["command"].index("-n") + 1]) == worker["replicas"] * spec["slotsPerWorker"]
assert f"HostKey {spec['sshAuthMountPath']}/id_rsa" in dockerfile
assert listen["command"][-1] in dockerfile
assert set(re.findall(r"Port (\d+)", dockerfile)) == {str(listen["readinessProbe"]["tcpSocket"]["port"])}
mounts = [mount["mountPath"] for mount in listen["volumeMounts"]]
assert any(word.startswith(mount + "/") for word in start["args"] for mount in mounts)
print("deploy/kubernetes is consistent")
END
