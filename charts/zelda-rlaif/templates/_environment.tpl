{{/* Environment variables with the addresses of bus and store and the paths of mounted key files. */}}

{{- define "zelda.busSecret" -}}
{{- .Values.bus.secretName | default (printf "%s-bus" (include "zelda.fullname" .)) }}
{{- end }}

{{- define "zelda.storeSecret" -}}
{{- if eq .Values.store.mode "bucketclaim" }}{{ include "zelda.fullname" . }}-data
{{- else }}{{ .Values.store.secretName | default (printf "%s-store" (include "zelda.fullname" .)) }}{{ end }}
{{- end }}

{{- define "zelda.busUrl" -}}
{{- if eq .Values.bus.mode "external" }}{{ required "bus.url is needed with bus.mode external" .Values.bus.url }}
{{- else }}{{ ternary "tls" "nats" .Values.bus.tls.enabled }}://{{ include "zelda.fullname" . }}-nats.{{ .Release.Namespace }}.svc:4222{{ end }}
{{- end }}

{{- define "zelda.storeEndpoint" -}}
{{- if eq .Values.store.mode "external" }}{{ required "store.endpoint is needed with store.mode external" .Values.store.endpoint }}
{{- else if eq .Values.store.mode "embedded" }}http://{{ include "zelda.fullname" . }}-s3.{{ .Release.Namespace }}.svc:8333
{{- else }}https://$(BUCKET_HOST):$(BUCKET_PORT){{ end }}
{{- end }}

{{/* {name, key} of the ConfigMap with the store's authority, or nothing. OpenShift signs the servers of its Data Foundation
     and puts its authority into each namespace. */}}
{{- define "zelda.storeCa" -}}
{{- if .Values.store.ca.name }}{{ toJson .Values.store.ca }}
{{- else if eq .Values.store.mode "bucketclaim" }}{{ dict "name" "openshift-service-ca.crt" "key" "service-ca.crt" | toJson }}{{ end }}
{{- end }}

{{/* access to the store, and the log level */}}
{{- define "zelda.storeEnv" -}}
{{ include "zelda.storeAddressEnv" . }}
- {name: ZELDA_LOG__LEVEL, value: {{ .Values.log.level }}}
- {name: ZELDA_LOG__FORMAT, value: {{ .Values.log.format }}}
{{- end }}

{{/* access to the store only: Ray's workers write segments and need no bus */}}
{{- define "zelda.storeAddressEnv" -}}
{{- $claim := eq .Values.store.mode "bucketclaim" }}
{{- if $claim }}
{{- range list "BUCKET_HOST" "BUCKET_PORT" "BUCKET_NAME" }}
- name: {{ . }}
  valueFrom: {configMapKeyRef: {name: {{ include "zelda.fullname" $ }}-data, key: {{ . }}}}
{{- end }}
{{- end }}
- {name: ZELDA_STORE__URL, value: {{ ternary "bucket://$(BUCKET_NAME)" (printf "s3://%s" .Values.store.prefix) $claim | quote }}}
- {name: ZELDA_STORE__ENDPOINT, value: {{ include "zelda.storeEndpoint" . | quote }}}
- {name: ZELDA_STORE__REGION, value: {{ .Values.store.region | quote }}}
- {name: ZELDA_STORE__ACCESS_KEY_FILE, value: /var/run/zelda/store/access-key}
- {name: ZELDA_STORE__SECRET_KEY_FILE, value: /var/run/zelda/store/secret-key}
{{- if include "zelda.storeCa" . }}
- {name: ZELDA_STORE__CA_FILE, value: /var/run/zelda/store-ca/ca.crt}
{{- end }}
{{- end }}

{{- define "zelda.busEnv" -}}
- {name: ZELDA_BUS__URL, value: {{ include "zelda.busUrl" . | quote }}}
- {name: ZELDA_BUS__CREDENTIALS_FILE, value: /var/run/zelda/bus/credentials}
{{- if .Values.bus.tls.enabled }}
- {name: ZELDA_BUS__CA_FILE, value: /var/run/zelda/bus-ca/ca.crt}
{{- end }}
{{- end }}

{{/* where a service sends its spans, or nothing */}}
{{- define "zelda.tracingEnv" -}}
{{- with .Values.tracing }}{{ if .endpoint -}}
- {name: ZELDA_TRACING__ENDPOINT, value: {{ .endpoint | quote }}}
- {name: ZELDA_TRACING__SAMPLE_RATIO, value: {{ .sampleRatio | quote }}}
{{- if .ca.name }}
- {name: ZELDA_TRACING__CA_FILE, value: /var/run/zelda/tracing-ca/ca.crt}
{{- end }}
{{- end }}{{ end }}
{{- end }}

{{- define "zelda.tracingMounts" -}}
{{- if and .Values.tracing.endpoint .Values.tracing.ca.name -}}
- {name: tracing-ca, mountPath: /var/run/zelda/tracing-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "zelda.tracingVolumes" -}}
{{- if and .Values.tracing.endpoint .Values.tracing.ca.name -}}
- {{ include "zelda.caVolume" (dict "name" "tracing-ca" "ca" .Values.tracing.ca) }}
{{- end }}
{{- end }}

{{/* the pod's scratch space; besides its volumes, a service may write only here */}}
{{- define "zelda.scratchEnv" -}}
- {name: HOME, value: /tmp}
- {name: TMPDIR, value: /tmp}
{{- end }}

{{- define "zelda.storeMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: store, mountPath: /var/run/zelda/store, readOnly: true}
{{- if include "zelda.storeCa" . }}
- {name: store-ca, mountPath: /var/run/zelda/store-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "zelda.busMounts" -}}
- {name: bus, mountPath: /var/run/zelda/bus, readOnly: true}
{{- if .Values.bus.tls.enabled }}
- {name: bus-ca, mountPath: /var/run/zelda/bus-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "zelda.storeVolumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 2Gi}
- name: store
  secret:
    secretName: {{ include "zelda.storeSecret" . }}
    items:
      - {key: {{ .Values.store.accessKey }}, path: access-key}
      - {key: {{ .Values.store.secretKey }}, path: secret-key}
{{- if include "zelda.storeCa" . }}
- {{ include "zelda.caVolume" (dict "name" "store-ca" "ca" (include "zelda.storeCa" . | fromJson)) }}
{{- end }}
{{- end }}

{{/* dict root service -> the credentials of this service only */}}
{{- define "zelda.busVolumes" -}}
- name: bus
  secret:
    secretName: {{ include "zelda.busSecret" .root }}
    items: [{key: {{ .service }}.credentials, path: credentials}]
{{- if .root.Values.bus.tls.enabled }}
- {{ include "zelda.caVolume" (dict "name" "bus-ca" "ca" .root.Values.bus.tls.ca) }}
{{- end }}
{{- end }}

{{- define "zelda.caVolume" -}}
{name: {{ .name }}, configMap: {name: {{ required (printf "%s needs a ConfigMap" .name) .ca.name }}, items: [{key: {{ .ca.key }}, path: ca.crt}]}}
{{- end }}
