{{/* dict root component container(text) volumes(text) [token] -> spec of a pod that runs once with a project image */}}
{{- define "zelda.oncePod" -}}
restartPolicy: Never
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
securityContext: {{- include "zelda.podSecurity" .root | nindent 2 }}
{{- include "zelda.podOptions" .root }}
containers:
  - name: {{ .component }}
    image: {{ include "zelda.image" (dict "root" .root "service" (.service | default "coordinator")) }}
    imagePullPolicy: {{ .root.Values.images.pullPolicy }}
    resources: {requests: {cpu: 50m, memory: 128Mi}, limits: {cpu: 500m, memory: 256Mi}}
    securityContext: {{- include "zelda.containerSecurity" .root | nindent 6 }}
    {{- .container | nindent 4 }}
volumes: {{- .volumes | nindent 2 }}
{{- end }}

{{/* A finished Job stays for a day, so that its log can be read in the morning. Kubernetes must delete it, because
     nothing else deletes a hook's Job or one that Kustomize made. */}}
{{- define "zelda.onceKept" -}}
ttlSecondsAfterFinished: 86400
{{- end }}

{{/* Helm's events before which a Job runs as a hook; empty: it is a plain Job. A rollback needs the former topology of the bus. */}}
{{- define "zelda.provisionHook" -}}
{{- if and .Values.hooks.provision (eq .Values.bus.mode "external") (eq .Values.store.mode "external") (not .Values.secrets.generate) }}pre-install,pre-upgrade,pre-rollback{{ end }}
{{- end }}
{{- define "zelda.secretsHook" -}}
pre-install,pre-upgrade
{{- end }}
