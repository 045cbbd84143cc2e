{{/* Names, labels and image references of all objects. */}}

{{- define "zelda.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* Prefix of all object names. Short, because controllers append to it (a RayCluster may have 53 characters); the checksum
     keeps long names apart that begin alike. */}}
{{- define "zelda.fullname" -}}
{{- $name := default .Release.Name .Values.fullnameOverride }}
{{- if gt (len $name) 30 }}{{ $name | trunc 21 | trimSuffix "-" }}-{{ sha256sum $name | trunc 8 }}
{{- else }}{{ $name }}{{ end }}
{{- end }}

{{/* dict root component -> labels that never change, for selectors */}}
{{- define "zelda.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "zelda.labels" -}}
{{ include "zelda.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/part-of: {{ include "zelda.name" .root }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 }}{{/* a label holds no "+" */}}
{{- end }}

{{/* dict root component -> metadata of a namespaced object named after its component */}}
{{- define "zelda.metadata" -}}
name: {{ include "zelda.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "zelda.labels" . | nindent 2 }}
{{- end }}

{{/* dict root service -> image of one of the five services */}}
{{- define "zelda.image" -}}
{{- $images := .root.Values.images }}
{{- with index $images.digests .service }}{{ $images.registry }}/zelda-rlaif-{{ $.service }}@{{ . }}
{{- else }}{{ $images.registry }}/zelda-rlaif-{{ .service }}:{{ $images.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* a third-party image: {name, tag, digest} */}}
{{- define "zelda.thirdPartyImage" -}}
{{- if .digest }}{{ .name }}@{{ .digest }}{{ else }}{{ .name }}:{{ required "an image needs a tag or a digest" .tag }}{{ end }}
{{- end }}

{{/* dict root api group -> "true" to create objects of this optional API */}}
{{- define "zelda.api" -}}
{{- $switch := index .root.Values.apis .api }}
{{- if or (eq $switch "on") (and (eq $switch "auto") (.root.Capabilities.APIVersions.Has .group)) }}true{{ end }}
{{- end }}
