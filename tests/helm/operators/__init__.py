"""What operators make of the chart's objects: small models, each rule with the file and version that it was read from.

They replace no cluster. They apply the mutations that decide whether a pod can start, who may call it, and what a
change restarts. `KubeRay` means the fork of OpenShift AI: github.com/red-hat-data-services/kuberay.
"""
