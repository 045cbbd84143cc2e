{{- define "zelda.localQueue" -}}
{{- .Values.kueue.localQueue | default (include "zelda.fullname" .) }}
{{- end }}

{{/* The newest version of Kueue's objects that the cluster serves; releases before 1.3 of Red Hat's build lack v1beta2. The
     fields of the chart's objects are the same in both. */}}
{{- define "zelda.kueueVersion" -}}
{{- $served := .Capabilities.APIVersions }}
{{- if and ($served.Has "kueue.x-k8s.io/v1beta1") (not ($served.Has "kueue.x-k8s.io/v1beta2")) }}kueue.x-k8s.io/v1beta1{{ else }}kueue.x-k8s.io/v1beta2{{ end }}
{{- end }}

{{/* "true" to create objects of Kueue */}}
{{- define "zelda.kueue" -}}
{{- include "zelda.api" (dict "root" . "api" "kueue" "group" (include "zelda.kueueVersion" .)) }}
{{- end }}

{{- define "zelda.queueLabel" -}}
{{- if include "zelda.kueue" . }}
kueue.x-k8s.io/queue-name: {{ include "zelda.localQueue" . }}
{{- end }}
{{- end }}

{{/* "true" if the platform's operator puts its kube-rbac-proxy into the head. OpenShift AI's does so wherever the cluster
     has Routes; the proxy reviews tokens, so it needs one of its own and the way to the API server. */}}
{{- define "zelda.rayAuthProxy" -}}
{{- if eq .Values.ray.authProxy "auto" }}{{ include "zelda.api" (dict "root" . "api" "route" "group" "route.openshift.io/v1") }}
{{- else if eq .Values.ray.authProxy "on" }}true{{ end }}
{{- end }}

{{/* "true" if a container of the head other than Ray's own calls the API server: the proxy, or Ray's autoscaler */}}
{{- define "zelda.rayHeadToken" -}}
{{- if or (include "zelda.rayAuthProxy" .) .Values.ray.autoscaling }}true{{ end }}
{{- end }}

{{- define "zelda.rayClusterSpec" -}}
rayVersion: {{ .Values.ray.version | quote }}
{{- if and (eq .Values.platform.odhVersion "3.5") (not (include "zelda.queueLabel" .)) }}
upgradeStrategy: {type: Recreate} # else KubeRay leaves pods of the former image running; under Kueue a change re-admits them
{{- end }}
{{- if .Values.ray.autoscaling }}
enableInTreeAutoscaling: true
autoscalerOptions:
  idleTimeoutSeconds: 300
  securityContext: {{- include "zelda.containerSecurity" . | nindent 4 }}
  resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {cpu: 500m, memory: 512Mi}}
{{- end }}
{{- with .Values.ray.gcsFaultTolerance }}
{{- if .enabled }}
gcsFaultToleranceOptions:
  redisAddress: {{ required "ray.gcsFaultTolerance.redisAddress is needed" .redisAddress | quote }}
  {{- with .secretName }}
  redisPassword: {valueFrom: {secretKeyRef: {name: {{ . }}, key: password}}}
  {{- end }}
{{- end }}
{{- end }}
headGroupSpec:
  rayStartParams: {num-cpus: "0", dashboard-host: "0.0.0.0"} # no environment runs beside the driver
  template:
    {{- include "zelda.rayPod" (dict "root" . "node" "head" "values" .Values.ray.head) | nindent 4 }}
workerGroupSpecs:
  - groupName: play
    replicas: {{ .Values.ray.workers.min }}
    minReplicas: {{ .Values.ray.workers.min }}
    maxReplicas: {{ ternary .Values.ray.workers.max .Values.ray.workers.min .Values.ray.autoscaling }}
    rayStartParams: {}
    template:
      {{- include "zelda.rayPod" (dict "root" . "node" "worker" "values" .Values.ray.workers) | nindent 6 }}
{{- end }}

{{/* resources of head or worker, with the head's GPU in requests and limits */}}
{{- define "zelda.rayResources" -}}
{{- $gpus := dict }}{{ if .gpus }}{{ $gpus = dict "nvidia.com/gpu" (toString .gpus) }}{{ end }}
{{- dict "requests" (merge (deepCopy $gpus) .resources.requests) "limits" (merge (deepCopy $gpus) .resources.limits) | toYaml }}
{{- end }}

{{/* dict root node values -> pod template of head or worker: the trainer's image, the store's key, no bus. Its labels name
     no version, and drivers take the log level from the trainer: a change of either does not restart training. */}}
{{- define "zelda.rayPod" -}}
{{- $self := dict "root" .root "component" (printf "ray-%s" .node) "service" "trainer" }}
{{- $head := eq .node "head" }}
{{- $token := and $head (include "zelda.rayHeadToken" .root) }}
metadata:
  labels: {{- include "zelda.selector" $self | nindent 4 }}
spec:
  automountServiceAccountToken: {{ ternary true false (not (empty $token)) }}
  {{- if and $head (include "zelda.plannerOwnAccount" .root) }}
  serviceAccountName: {{ include "zelda.plannerAccount" .root }}
  {{- end }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .root.Values.services.trainer.graceSeconds }}
  securityContext: {{- include "zelda.podSecurity" .root | nindent 4 }}
  {{- include "zelda.podOptions" .root | nindent 2 }}
  {{- include "zelda.placement" .values | nindent 2 }}
  {{- if include "zelda.hasRom" $self }}
  initContainers:
    - {{- include "zelda.romInit" $self | nindent 6 }}
  {{- end }}
  containers:
    - name: ray-{{ .node }}
      image: {{ include "zelda.image" $self }}
      imagePullPolicy: {{ .root.Values.images.pullPolicy }}
      env:
        {{- include "zelda.scratchEnv" .root | nindent 8 }}
        {{- include "zelda.storeAddressEnv" .root | nindent 8 }}
        - {name: ZELDA_DRIVER__RAY_ADDRESS, value: auto} # a driver here joins this cluster
        {{- include "zelda.romEnv" (merge (dict "variable" "ZELDA_DRIVER__ROM") $self) | nindent 8 }}
        {{- if and $head .values.gpus }}
        - {name: ZELDA_DRIVER__LEARNER_DEVICE, value: cuda}
        {{- end }}
        {{- if $head }}{{ include "zelda.plannerEnv" .root | nindent 8 }}{{ end }}
        {{- range $name, $value := .root.jobEnv }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
      ports:
        - {name: metrics, containerPort: 8080}
        {{- if $head }}
        - {name: gcs-server, containerPort: 6379}
        - {name: dashboard, containerPort: 8265}
        - {name: client, containerPort: 10001}
        {{- end }}
      {{- if $head }}
      lifecycle: # Ray ends a driver without a signal; this lets it write its checkpoint
        preStop: {exec: {command: [/opt/venv/bin/python, -m, services.trainer.driver.stop, --seconds, {{ sub .root.Values.services.trainer.graceSeconds 10 | quote }}]}}
      {{- end }}
      resources: {{- include "zelda.rayResources" .values | nindent 8 }}
      securityContext: {{- include "zelda.containerSecurity" .root | nindent 8 }}
      volumeMounts:
        {{- include "zelda.storeMounts" .root | nindent 8 }}
        {{- include "zelda.romMounts" $self | nindent 8 }}
        {{- if $head }}{{ include "zelda.plannerMounts" .root | nindent 8 }}{{ end }}
        {{- if $token }}
        - {name: no-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true} # only the other containers get one
        {{- end }}
  volumes:
    {{- include "zelda.storeVolumes" .root | nindent 4 }}
    {{- include "zelda.romVolumes" $self | nindent 4 }}
    {{- if $head }}{{ include "zelda.plannerVolumes" .root | nindent 4 }}{{ end }}
    {{- if $token }}
    - {name: no-token, emptyDir: {sizeLimit: 1Mi}}
    {{- end }}
{{- end }}

{{/* command of the epoch job; `.` is the job's values. It continues from the last epoch of the same run. */}}
{{- define "zelda.entrypoint.epoch" -}}
python -m cli epoch --run {{ required "jobs.epoch.run is needed: name the run to train" .run }}
{{- range .set }} --set {{ . }}{{ end }}
{{- end }}
