{{- define "zelda.queueLabel" -}}
{{- if include "zelda.api" (dict "root" . "api" "kueue" "group" "kueue.x-k8s.io/v1beta2") }}
kueue.x-k8s.io/queue-name: {{ .Values.kueue.localQueue }}
{{- end }}
{{- end }}

{{- define "zelda.rayClusterSpec" -}}
rayVersion: {{ .Values.ray.version | quote }}
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
    {{- include "zelda.rayPod" (dict "root" . "node" (ternary "judge" "head" (.judging | default false)) "values" .Values.ray.head) | nindent 4 }}
{{- if not .judging }}
workerGroupSpecs:
  - groupName: play
    replicas: {{ .Values.ray.workers.min }}
    minReplicas: {{ .Values.ray.workers.min }}
    maxReplicas: {{ ternary .Values.ray.workers.max .Values.ray.workers.min .Values.ray.autoscaling }}
    rayStartParams: {}
    template:
      {{- include "zelda.rayPod" (dict "root" . "node" "worker" "values" .Values.ray.workers) | nindent 6 }}
{{- end }}
{{- end }}

{{/* dict root node values -> pod template of head, worker, or judge (the head of a single evaluation pass): the trainer's
     image, the store's key, no bus */}}
{{- define "zelda.rayPod" -}}
{{- $self := dict "root" .root "component" (printf "ray-%s" .node) "service" "trainer" }}
metadata:
  labels: {{- include "zelda.labels" $self | nindent 4 }}
spec:
  {{- if eq .node "judge" }}
  serviceAccountName: {{ include "zelda.fullname" .root }}-judge
  {{- end }}
  {{- if not (and (eq .node "head") .root.Values.ray.autoscaling) }}
  automountServiceAccountToken: false
  {{- end }}
  enableServiceLinks: false
  securityContext: {{- include "zelda.podSecurity" .root | nindent 4 }}
  {{- include "zelda.pullSecrets" .root | nindent 2 }}
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
        {{- include "zelda.storeEnv" .root | nindent 8 }}
        {{- if ne .node "judge" }}
        - {name: ZELDA_DRIVER__RAY_ADDRESS, value: auto} # a driver here joins this cluster
        {{- end }}
        {{- if ne .node "judge" }}{{ include "zelda.romEnv" (merge (dict "variable" "ZELDA_DRIVER__ROM") $self) | nindent 8 }}{{ end }}
        {{- if eq .node "judge" }}{{ include "zelda.env.judge" .root | nindent 8 }}{{ end }}
        {{- range $name, $value := .root.jobEnv }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
      ports:
        - {name: metrics, containerPort: 8080}
        {{- if ne .node "worker" }}
        - {name: gcs-server, containerPort: 6379}
        - {name: dashboard, containerPort: 8265}
        - {name: client, containerPort: 10001}
        {{- end }}
      resources: {{- toYaml .values.resources | nindent 8 }}
      securityContext: {{- include "zelda.containerSecurity" .root | nindent 8 }}
      volumeMounts:
        {{- include "zelda.storeMounts" .root | nindent 8 }}
        {{- include "zelda.romMounts" $self | nindent 8 }}
        {{- if eq .node "judge" }}{{ include "zelda.mounts.judge" .root | nindent 8 }}{{ end }}
  volumes:
    {{- include "zelda.storeVolumes" .root | nindent 4 }}
    {{- include "zelda.romVolumes" $self | nindent 4 }}
    {{- if eq .node "judge" }}{{ include "zelda.volumes.judge" .root | nindent 4 }}{{ end }}
{{- end }}

{{/* commands of the single jobs; `.` is the job's values. An epoch continues from the last one of the same run. */}}
{{- define "zelda.entrypoint.epoch" -}}
python -m cli epoch --run {{ required "ray.jobs.epoch.run is needed" .run }}
{{- range .set }} --set {{ . }}{{ end }}
{{- end }}

{{- define "zelda.entrypoint.evaluation" -}}
python -m cli judge segments {{ required "ray.jobs.evaluation.run is needed" .run }} --epoch {{ .epoch }} --judges /etc/zelda/judges.yaml
{{- end }}
