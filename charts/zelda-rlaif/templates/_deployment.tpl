{{/* dict root service -> the Deployment of one of the five services. Their differences are
     "zelda.env.<service>", "zelda.mounts.<service>" and "zelda.volumes.<service>" in _services.tpl. */}}
{{- define "zelda.deployment" -}}
{{- $root := .root }}{{ $service := .service }}{{ $values := index .root.Values.services .service }}
{{- $self := dict "root" $root "component" $service "service" $service }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "zelda.metadata" $self | nindent 2 }}
spec:
  {{- if not (and (eq $service "judge") (ne $root.Values.services.judge.autoscaling.mode "none")) }}
  replicas: {{ $values.replicas }}
  {{- end }}
  {{- if eq $service "trainer" }}
  strategy: {type: Recreate} # two trainers would start two drivers for one epoch
  {{- else }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  {{- end }}
  selector:
    matchLabels: {{- include "zelda.selector" $self | nindent 6 }}
  template:
    metadata:
      labels: {{- include "zelda.labels" $self | nindent 8 }}
      {{- if eq $service "judge" }}
      annotations: # restarts the pods when the file in the ConfigMap changes; all other settings are variables
        checksum/config: {{ toJson (list (include "zelda.judgesFile" $root) $root.Values.judges.phases) | sha256sum }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "zelda.fullname" $root }}-{{ $service }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ $values.graceSeconds }}
      securityContext: {{- include "zelda.podSecurity" $root | nindent 8 }}
      {{- include "zelda.podOptions" $root | nindent 6 }}
      {{- include "zelda.placement" $values | nindent 6 }}
      {{- include "zelda.spread" $self | nindent 6 }}
      {{- if and (include "zelda.hasRom" $self) (has $service (list "trainer" "exporter")) }}
      initContainers:
        - {{- include "zelda.romInit" $self | nindent 10 }}
      {{- end }}
      containers:
        - name: {{ $service }}
          image: {{ include "zelda.image" $self }}
          imagePullPolicy: {{ $root.Values.images.pullPolicy }}
          command: [python, -m, services.{{ $service }}]
          env:
            {{- include "zelda.scratchEnv" $root | nindent 12 }}
            {{- include "zelda.storeEnv" $root | nindent 12 }}
            {{- include "zelda.busEnv" $root | nindent 12 }}
            {{- include "zelda.tracingEnv" $root | nindent 12 }}
            - {name: ZELDA_HTTP__HOST, value: "::"} # IPv4, too
            - {name: ZELDA_HTTP__PORT, value: "8080"}
            - {name: ZELDA_SHUTDOWN__DRAIN_S, value: {{ include "zelda.drainSeconds" $values.graceSeconds | quote }}}
            {{- include (printf "zelda.env.%s" $service) $root | nindent 12 }}
            {{- range $name, $value := $values.env }}
            - {name: {{ $name }}, value: {{ $value | quote }}}
            {{- end }}
          ports: [{name: http, containerPort: 8080}]
          {{- include "zelda.probes" (dict "port" "http" "scheme" "HTTP") | nindent 10 }}
          resources: {{- toYaml $values.resources | nindent 12 }}
          securityContext: {{- include "zelda.containerSecurity" $root | nindent 12 }}
          volumeMounts:
            {{- include "zelda.storeMounts" $root | nindent 12 }}
            {{- include "zelda.busMounts" $root | nindent 12 }}
            {{- include "zelda.tracingMounts" $root | nindent 12 }}
            {{- include (printf "zelda.mounts.%s" $service) $root | nindent 12 }}
        {{- if and (eq $service "coordinator") $root.Values.expose.oauth.enabled }}
        - {{- include "zelda.oauthProxy" $root | nindent 10 }}
        {{- end }}
      volumes:
        {{- include "zelda.storeVolumes" $root | nindent 8 }}
        {{- include "zelda.busVolumes" $self | nindent 8 }}
        {{- include "zelda.tracingVolumes" $root | nindent 8 }}
        {{- include (printf "zelda.volumes.%s" $service) $root | nindent 8 }}
        {{- if and (eq $service "coordinator") $root.Values.expose.oauth.enabled }}
        # The proxy reads its token once, at its start, and no user can log in after the token's end. It ends with the pod, too.
        - {{- include "zelda.accountToken" (dict "name" "account-token" "audience" "" "seconds" 31536000) | nindent 10 }}
        {{- end }}
{{- end }}

{{/* graceSeconds -> seconds in which a service finishes work. The rest is for what follows: the last fetch, giving back what is
     unfinished, closing the connections. A short grace is halved. */}}
{{- define "zelda.drainSeconds" -}}
{{- max (sub . 15) (div . 2) }}
{{- end }}
