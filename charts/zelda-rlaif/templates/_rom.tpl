{{/* The ROM: an init container copies it to /rom and compares its checksum, so that a wrong file stops the pod early.
     Without a ROM, runs play Bramble, which the images contain. The saved start state is copied with the ROM, if the
     values name one; a driver refuses a state that does not load. dict root service variable */}}

{{- define "zelda.hasRom" -}}
{{- if ne .root.Values.rom.source "none" }}true{{ end }}
{{- end }}

{{- define "zelda.romEnv" -}}
{{- if include "zelda.hasRom" . }}
- {name: {{ .variable }}, value: /rom/game.gbc}
{{- if and .root.Values.rom.start.path (eq .variable "ZELDA_DRIVER__ROM") }}
- {name: ZELDA_DRIVER__START_STATE, value: /rom/start.state}
{{- end }}
{{- end }}
{{- end }}

{{- define "zelda.romMounts" -}}
{{- if include "zelda.hasRom" . }}
- {name: rom, mountPath: /rom, readOnly: true}
{{- end }}
{{- end }}

{{- define "zelda.romVolumes" -}}
{{- if include "zelda.hasRom" . }}
{{- $rom := .root.Values.rom }}
- name: rom
  emptyDir: {sizeLimit: 64Mi}
{{ include "zelda.romSource" (dict "volume" "rom-source" "source" $rom.source "name" $rom.name "path" (required "rom.path is needed" $rom.path)) }}
{{- with $rom.start }}{{ if .path }}
{{ include "zelda.romSource" (dict "volume" "start-source" "source" $rom.source "name" (.name | default $rom.name) "path" .path) }}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{/* The volume with a file that is not in the bucket. dict volume source name path */}}
{{- define "zelda.romSource" -}}
{{- if eq .source "secret" }}
- name: {{ .volume }}
  secret: {secretName: {{ required "rom.name is needed" .name }}, items: [{key: {{ .path }}, path: {{ .path }}}]}
{{- else if eq .source "pvc" }}
- name: {{ .volume }}
  persistentVolumeClaim: {claimName: {{ required "rom.name is needed" .name }}, readOnly: true}
{{- end }}
{{- end }}

{{/* The command that copies a file. dict volume source path to */}}
{{- define "zelda.romBring" -}}
{{- if eq .source "bucket" }}python -m shared.store.fetch models/{{ .path }} /rom/{{ .to }}
{{- else }}cp /{{ .volume }}/{{ .path }} /rom/{{ .to }}
{{- end }}
{{- end }}

{{- define "zelda.romInit" -}}
{{- $rom := .root.Values.rom }}
{{- $bring := include "zelda.romBring" (dict "volume" "rom-source" "source" $rom.source "path" $rom.path "to" "game.gbc") }}
{{- $start := $rom.start.path }}
{{- if $start }}
{{- $bring = printf "%s && %s" $bring (include "zelda.romBring" (dict "volume" "start-source" "source" $rom.source "path" $start "to" "start.state")) }}
{{- end -}}
name: rom
image: {{ include "zelda.image" . }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
command: [sh, -ec, "{{ $bring }} && echo '{{ required "rom.sha256 is needed with a ROM" $rom.sha256 }}  /rom/game.gbc' | sha256sum -c -"]
env:
  {{- include "zelda.scratchEnv" .root | nindent 2 }}
  {{- include "zelda.storeAddressEnv" .root | nindent 2 }}
resources: {requests: {cpu: 50m, memory: 128Mi}, limits: {cpu: 500m, memory: 256Mi}}
securityContext: {{- include "zelda.containerSecurity" .root | nindent 2 }}
volumeMounts:
  {{- include "zelda.storeMounts" .root | nindent 2 }}
  - {name: rom, mountPath: /rom}
  {{- if ne $rom.source "bucket" }}
  - {name: rom-source, mountPath: /rom-source, readOnly: true}
  {{- if $start }}
  - {name: start-source, mountPath: /start-source, readOnly: true}
  {{- end }}
  {{- end }}
{{- end }}
