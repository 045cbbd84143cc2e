{{/* The ROM: an init container brings it to /rom and compares its checksum, so that a wrong file stops the pod early.
     Without one the free game Bramble is played, which the images contain. dict root service variable */}}

{{- define "zelda.hasRom" -}}
{{- if ne .root.Values.rom.source "none" }}true{{ end }}
{{- end }}

{{- define "zelda.romEnv" -}}
{{- if include "zelda.hasRom" . }}
- {name: {{ .variable }}, value: /rom/game.gbc}
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
{{- if eq $rom.source "secret" }}
- name: rom-source
  secret: {secretName: {{ required "rom.name is needed" $rom.name }}, items: [{key: {{ required "rom.path is needed" $rom.path }}, path: game.gbc}]}
{{- else if eq $rom.source "pvc" }}
- name: rom-source
  persistentVolumeClaim: {claimName: {{ required "rom.name is needed" $rom.name }}, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "zelda.romInit" -}}
{{- $rom := .root.Values.rom }}
{{- $source := ternary "/source/game.gbc" (printf "/source/%s" $rom.path) (eq $rom.source "secret") }}
{{- $bring := ternary (printf "python -m shared.store.fetch models/%s /rom/game.gbc" $rom.path) (printf "cp %s /rom/game.gbc" $source) (eq $rom.source "bucket") -}}
name: rom
image: {{ include "zelda.image" . }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
command: [sh, -ec, "{{ $bring }} && echo '{{ required "rom.sha256 is needed with a ROM" $rom.sha256 }}  /rom/game.gbc' | sha256sum -c -"]
env:
  {{- include "zelda.scratchEnv" .root | nindent 2 }}
  {{- include "zelda.storeEnv" .root | nindent 2 }}
resources: {requests: {cpu: 50m, memory: 128Mi}, limits: {cpu: 500m, memory: 256Mi}}
securityContext: {{- include "zelda.containerSecurity" .root | nindent 2 }}
volumeMounts:
  {{- include "zelda.storeMounts" .root | nindent 2 }}
  - {name: rom, mountPath: /rom}
  {{- if ne $rom.source "bucket" }}
  - {name: rom-source, mountPath: /source, readOnly: true}
  {{- end }}
{{- end }}
