{{/* The embedded NATS server's configuration. Permissions come from files/bus.yaml, which is generated
     from the topology of the services. Passwords are variables, filled from the Secret at the start. */}}
{{- define "zelda.natsConfig" -}}
{{- $nats := .Values.bus.embedded }}
server_name: $POD_NAME
listen: 0.0.0.0:4222
http: 0.0.0.0:8222
max_payload: 64KB
jetstream {
  store_dir: /data
  {{- if $nats.syncAlways }}
  sync_interval: always
  {{- end }}
}
{{- if .Values.bus.tls.enabled }}
tls { cert_file: /etc/nats-tls/tls.crt, key_file: /etc/nats-tls/tls.key }
{{- end }}
{{- if gt (int $nats.replicas) 1 }}
cluster {
  name: {{ include "zelda.fullname" . }}
  listen: 0.0.0.0:6222
  authorization { user: cluster, password: $CLUSTER_PASSWORD }
  routes: [{{ range $i := until (int $nats.replicas) }}{{ if $i }}, {{ end }}$ROUTE_{{ $i }}{{ end }}]
}
{{- end }}
accounts {
  {{ .Values.bus.account }} {
    jetstream: enabled
    users: [
      {{- range $user, $permissions := (.Files.Get "files/bus.yaml" | fromYaml).users }}
      { user: {{ $user }}, password: ${{ upper $user }}_PASSWORD, permissions: {
          publish: { allow: {{ toRawJson $permissions.publish }} }
          subscribe: { allow: {{ toRawJson $permissions.subscribe }} } } }
      {{- end }}
    ]
  }
  SYS: {}
}
system_account: SYS
{{- end }}

{{/* host:port of the monitoring endpoint that KEDA reads */}}
{{- define "zelda.natsMonitor" -}}
{{- if eq .Values.bus.mode "embedded" }}{{ include "zelda.fullname" . }}-nats-headless.{{ .Release.Namespace }}.svc.cluster.local:8222
{{- else }}{{ required "bus.monitorAddress is needed for keda with an external bus" .Values.bus.monitorAddress }}{{ end }}
{{- end }}
