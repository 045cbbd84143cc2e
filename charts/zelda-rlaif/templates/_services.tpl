{{/* Parts of the five services that differ. */}}

{{- define "zelda.apiSecret" -}}
{{- .Values.api.tokenSecret | default (printf "%s-api" (include "zelda.fullname" .)) }}
{{- end }}

{{- define "zelda.env.coordinator" -}}
- {name: ZELDA_COORDINATOR__TOKENS_FILE, value: /var/run/zelda/api/tokens}
{{- if eq .Values.rom.source "none" }}
- {name: ZELDA_COORDINATOR__GAMES, value: '["bramble"]'}
{{- end }}
{{- $room := include "zelda.runRoom" . | fromJson }}
{{- with $room.defaults }}
- {name: ZELDA_COORDINATOR__RUN_DEFAULTS, value: {{ toJson . | quote }}}
{{- end }}
{{- with $room.maxEnvRunners }}
- {name: ZELDA_COORDINATOR__MAX_ENV_RUNNERS, value: {{ . | toString | quote }}}
{{- end }}
{{- end }}

{{/* JSON {defaults, maxEnvRunners}: fields of new runs, from the workers of Ray. An env runner takes a core, and one core of a
     worker is left to Ray. The batch has as many steps of each environment as its default for few environments, and minibatches and
     learning rate follow it. Learners take turns with the env runners on the same cores. */}}
{{- define "zelda.runRoom" -}}
{{- $runs := .Values.runs }}{{ $defaults := dict }}{{ $max := 0 }}
{{- if eq .Values.services.trainer.backend "ray" }}
{{- $cores := div (include "zelda.millicores" .Values.ray.workers.resources.limits.cpu | int64) 1000 }}
{{- $max = mul .Values.ray.workers.max $cores }}
{{- if $runs.fromWorkers }}
{{- $runners := mul .Values.ray.workers.min (max 1 (sub $cores 1)) }}
{{- $environments := mul $runners $runs.envsPerRunner }}
{{- $defaults = dict "env_runners" $runners "envs_per_runner" $runs.envsPerRunner "batch_size" (max 4096 (mul $environments $runs.stepsPerEnv)) "learners" $runs.learners "ppo" (dict "reference_batch" 4096) }}
{{- end }}
{{- end }}
{{- dict "defaults" (mergeOverwrite $defaults $runs.defaults) "maxEnvRunners" $max | toJson }}
{{- end }}
{{- define "zelda.mounts.coordinator" -}}
- {name: api, mountPath: /var/run/zelda/api, readOnly: true}
{{- end }}
{{- define "zelda.volumes.coordinator" -}}
- name: api
  secret: {secretName: {{ include "zelda.apiSecret" . }}, items: [{key: tokens, path: tokens}]}
{{- if .Values.expose.oauth.enabled }}
- name: proxy-tls
  secret: {secretName: {{ include "zelda.fullname" . }}-proxy-tls}
- name: proxy-cookie
  secret: {secretName: {{ .Values.expose.oauth.cookieSecret | default (include "zelda.apiSecret" .) }}, items: [{key: session_secret, path: session_secret}]}
{{- end }}
{{- end }}

{{/* Users log in with the cluster's account; the API behind it still requires its own token. */}}
{{- define "zelda.oauthProxy" -}}
name: oauth-proxy
image: {{ include "zelda.thirdPartyImage" .Values.expose.oauth.image }}
args:
  - -provider=openshift
  - -https-address=:8443
  - -http-address=
  - -upstream=http://localhost:8080
  - -upstream-timeout=1h # as the Route; a deletion answers when all objects of its run are gone
  - -openshift-service-account={{ include "zelda.fullname" . }}-coordinator
  - '-openshift-sar={"namespace":"{{ .Release.Namespace }}","resource":"services","resourceName":"{{ include "zelda.fullname" . }}-coordinator","verb":"get"}'
  - -pass-basic-auth=false # it would replace the API's bearer token
  - -tls-cert=/etc/proxy-tls/tls.crt
  - -tls-key=/etc/proxy-tls/tls.key
  - -cookie-secret-file=/etc/proxy-cookie/session_secret
ports: [{name: https, containerPort: 8443}]
readinessProbe:
  tcpSocket: {port: https}
livenessProbe:
  tcpSocket: {port: https}
  periodSeconds: 20
resources: {{- toYaml .Values.expose.oauth.resources | nindent 2 }}
securityContext: {{- include "zelda.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: proxy-tls, mountPath: /etc/proxy-tls, readOnly: true}
  - {name: proxy-cookie, mountPath: /etc/proxy-cookie, readOnly: true}
  - {name: account-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}

{{- define "zelda.env.trainer" -}}
{{ include "zelda.romEnv" (dict "root" . "variable" "ZELDA_DRIVER__ROM") }}
{{- if eq .Values.services.trainer.backend "ray" }}
- {name: ZELDA_TRAINER__BACKEND, value: ray_jobs}
- {name: ZELDA_TRAINER__RAY_ADDRESS, value: "http://{{ include "zelda.fullname" . }}-ray-head-svc.{{ .Release.Namespace }}.svc:8265"}
{{- if .Values.ray.tokenSecret }}
- {name: ZELDA_TRAINER__RAY_TOKEN_FILE, value: /var/run/zelda/ray/token}
{{- end }}
{{- else }}
- {name: ZELDA_TRAINER__BACKEND, value: local}
{{- include "zelda.plannerEnv" . }}
{{- end }}
{{- end }}
{{- define "zelda.mounts.trainer" -}}
{{ include "zelda.romMounts" (dict "root" .) }}
{{- if eq .Values.services.trainer.backend "local" }}
- {name: shared-memory, mountPath: /dev/shm}
{{- include "zelda.plannerMounts" . }}
{{- else if .Values.ray.tokenSecret }}
- {name: ray-token, mountPath: /var/run/zelda/ray, readOnly: true}
{{- end }}
{{- end }}
{{- define "zelda.volumes.trainer" -}}
{{ include "zelda.romVolumes" (dict "root" .) }}
{{- if eq .Values.services.trainer.backend "local" }}
- name: shared-memory # Ray's object store; counts to the memory limit
  emptyDir: {medium: Memory, sizeLimit: 1Gi}
{{- include "zelda.plannerVolumes" . }}
{{- else }}
{{- with .Values.ray.tokenSecret }}
- name: ray-token
  secret: {secretName: {{ . }}, items: [{key: token, path: token}]}
{{- end }}
{{- end }}
{{- end }}

{{- define "zelda.env.rewardmodel" -}}
{{- end }}
{{- define "zelda.mounts.rewardmodel" -}}
{{- end }}
{{- define "zelda.volumes.rewardmodel" -}}
{{- end }}

{{- define "zelda.env.exporter" -}}
{{ include "zelda.romEnv" (dict "root" . "variable" "ZELDA_ROM__FILE") }}
{{- end }}
{{- define "zelda.mounts.exporter" -}}
{{ include "zelda.romMounts" (dict "root" .) }}
{{- end }}
{{- define "zelda.volumes.exporter" -}}
{{ include "zelda.romVolumes" (dict "root" .) }}
{{- end }}
