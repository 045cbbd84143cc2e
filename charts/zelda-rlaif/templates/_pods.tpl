{{/* Parts of pods. OpenShift's restricted-v2 assigns a user id to each namespace, so the default names none. */}}

{{- define "zelda.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.platform.userId }}
runAsUser: {{ . }}
fsGroup: {{ . }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "zelda.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* a Placement of the values -> nodeSelector and tolerations */}}
{{- define "zelda.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{- range . }}
  - {{ include "zelda.toleration" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* empty fields of a toleration mean "any": they are left out */}}
{{- define "zelda.toleration" -}}
{operator: {{ .operator | default "Exists" }}
{{- with .key }}, key: {{ . | quote }}{{ end }}
{{- with .value }}, value: {{ . | quote }}{{ end }}
{{- with .effect }}, effect: {{ . }}{{ end }}}
{{- end }}

{{/* dict root component -> spread of replicas over nodes and zones */}}
{{- define "zelda.spread" -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "zelda.selector" $ | nindent 8 }}
{{- end }}
{{- end }}

{{- define "zelda.podOptions" -}}
{{- with .Values.platform.priorityClass }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* liveness, readiness and start-up of a service; `.scheme` and `.port` differ behind the proxy */}}
{{- define "zelda.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: {{ .port }}, scheme: {{ .scheme }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: {{ .port }}, scheme: {{ .scheme }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: {{ .port }}, scheme: {{ .scheme }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* a Volume of the values -> claim template named data */}}
{{- define "zelda.claimTemplate" -}}
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources: {requests: {storage: {{ .size }}}}
{{- end }}

{{/* the pod's identity in one container only: token, CA and namespace, where clients expect them. dict name audience
     [seconds]: life of a token; Kubernetes renews the file, so an hour is enough for who reads it again */}}
{{- define "zelda.accountToken" -}}
name: {{ .name }}
projected:
  sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: {{ .seconds | default 3600 }}
        {{- with .audience }}
        audience: {{ . }}
        {{- end }}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}
