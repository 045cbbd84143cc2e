{{/* Planner and guidance: the driver of a run calls models. It runs on Ray's head, or in the trainer's pod without Ray. */}}

{{/* The planner's file: one route for each kind of question, to the models of the judges */}}
{{- define "zelda.plannerFile" -}}
{{- $planner := .Values.planner }}
routes:
  {{- range $mode, $route := $planner.routes }}{{ with $route }}
  {{ $mode }}:
    {{- include "zelda.route" (dict "root" $ "name" .route "caller" "planner") | nindent 4 }}
    model: {{ include "zelda.modelName" (dict "root" $ "name" .route) | quote }}
    total_timeout_s: {{ .timeoutSeconds }}
    longest_timeout_s: {{ .timeoutSeconds }}
    max_concurrent: {{ .concurrency }}
    max_output_tokens: {{ .maxOutputTokens }}
    prices: {{ toJson .prices }}
  {{- end }}{{ end }}
budget: {{ toJson $planner.budget }}
keep_answers: {{ $planner.keepAnswers }}
{{- end }}

{{/* component of the pods that run drivers */}}
{{- define "zelda.plannerPod" -}}
{{- ternary "ray-head" "trainer" (eq .Values.services.trainer.backend "ray") }}
{{- end }}

{{/* "true" if models know the planner by the account of its pod */}}
{{- define "zelda.plannerAccountToken" -}}
{{- if and .Values.planner.enabled (eq .Values.judges.mode "llmd") .Values.llm.auth }}true{{ end }}
{{- end }}

{{/* "true" if the head has an account of the chart's: the operator replaces it where it adds its proxy */}}
{{- define "zelda.plannerOwnAccount" -}}
{{- if and (include "zelda.plannerAccountToken" .) (eq (include "zelda.plannerPod" .) "ray-head") (not (include "zelda.rayAuthProxy" .)) }}true{{ end }}
{{- end }}

{{/* account of the pods that run drivers, as the models see it */}}
{{- define "zelda.plannerAccount" -}}
{{- $name := include "zelda.fullname" . }}
{{- if eq (include "zelda.plannerPod" .) "trainer" }}{{ $name }}-trainer
{{- else if include "zelda.plannerOwnAccount" . }}{{ $name }}-planner
{{- else }}{{ $name }}-ray-oauth-proxy-sa{{ end }}
{{- end }}

{{- define "zelda.plannerEnv" -}}
{{- if .Values.planner.enabled }}
- {name: ZELDA_DRIVER__PLANNER_FILE, value: /etc/zelda/planner.yaml}
{{- end }}
{{- end }}

{{- define "zelda.plannerMounts" -}}
{{- if .Values.planner.enabled }}
- {name: planner, mountPath: /etc/zelda, readOnly: true}
{{- include "zelda.modelMounts" (dict "root" . "caller" "planner") }}
{{- end }}
{{- end }}

{{- define "zelda.plannerVolumes" -}}
{{- if .Values.planner.enabled }}
- name: planner
  configMap: {name: {{ include "zelda.fullname" . }}-planner}
{{- include "zelda.modelVolumes" (dict "root" . "caller" "planner") }}
{{- end }}
{{- end }}
