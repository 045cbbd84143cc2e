{{/* Every allowed connection as data: name -> {pods, ingress|egress: [{peers, ports}], hook}. Pods and peers are selectors.
     All other pods of the namespace are denied too, except OpenShift's builds and the workbenches of clients. */}}
{{- define "zelda.edges" -}}
{{- $policy := .Values.networkPolicies }}
{{- $monitoring := dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $policy.monitoringNamespace)) }}
{{- $router := dict "namespaceSelector" (dict "matchLabels" $policy.ingressLabels) }}
{{- $external := dict "ipBlock" (dict "cidr" $policy.externalCidr) }}
{{- $source := dict "ipBlock" (dict "cidr" $policy.modelSourceCidr) }}
{{- $edges := dict }}
{{- $services := list "coordinator" "trainer" "judge" "rewardmodel" "exporter" }}
{{- $ray := ternary (list "ray-head" "ray-worker") (list) (eq .Values.services.trainer.backend "ray") }}
{{- $judges := list "judge" }}
{{- $jobs := list }}
{{- if .Values.jobs.evaluation.enabled }}{{ $jobs = append $jobs "evaluation" }}{{ $judges = append $judges "evaluation" }}{{ end }}
{{- if .Values.jobs.rewardmodel.enabled }}{{ $jobs = append $jobs "rewardmodel-training" }}{{ end }}
{{- /* A hook's pod runs before these policies exist or follow new values: it brings a policy of its own. */}}
{{- $provisionHook := include "zelda.provisionHook" . }}
{{- $onBus := concat $services (ternary (list "provision") (list) (empty $provisionHook)) }}{{ $onStore := concat $onBus $ray $jobs }}
{{- $planners := ternary (list (include "zelda.plannerPod" .)) (list) .Values.planner.enabled }}
{{- $callers := concat $judges $planners }}

{{- $_ := set $edges "metrics" (dict "pods" $services "ingress" (list (dict "peers" (list $monitoring) "ports" (list 8080)))) }}
{{- if eq .Values.bus.mode "embedded" }}
{{- $_ := set $edges "bus-clients" (dict "pods" $onBus "egress" (list (dict "components" (list "nats") "ports" (list 4222)))) }}
{{- $nats := list (dict "components" $onBus "ports" (list 4222)) }}
{{- if gt (int .Values.bus.embedded.replicas) 1 }}
{{- $nats = append $nats (dict "components" (list "nats") "ports" (list 6222)) }}
{{- $_ := set $edges "bus-cluster" (dict "pods" (list "nats") "egress" (list (dict "components" (list "nats") "ports" (list 6222)))) }}
{{- end }}
{{- if eq .Values.services.judge.autoscaling.mode "keda" }}
{{- $keda := dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $policy.kedaNamespace)) }}
{{- $nats = append $nats (dict "peers" (list $keda) "ports" (list 8222)) }}
{{- end }}
{{- if .Values.bus.embedded.exporter.enabled }}{{ $nats = append $nats (dict "peers" (list $monitoring) "ports" (list 7777)) }}{{ end }}
{{- $_ := set $edges "bus" (dict "pods" (list "nats") "ingress" $nats) }}
{{- else }}
{{- $_ := set $edges "bus-clients" (dict "pods" $onBus "egress" (list (dict "peers" (list $external) "ports" (list (include "zelda.urlPort" .Values.bus.url | int))))) }}
{{- end }}
{{- if eq .Values.store.mode "embedded" }}
{{- $_ := set $edges "store-clients" (dict "pods" $onStore "egress" (list (dict "components" (list "s3") "ports" (list 8333)))) }}
{{- $_ := set $edges "store" (dict "pods" (list "s3") "ingress" (list (dict "components" $onStore "ports" (list 8333)) (dict "peers" (list $monitoring) "ports" (list 9327)))) }}
{{- else }}
{{- /* A policy sees the pod's port, not the Service's: NooBaa listens on 6443 behind 443. */}}
{{- $ports := list 443 6443 }}{{ if eq .Values.store.mode "external" }}{{ $ports = list (include "zelda.urlPort" .Values.store.endpoint | int) }}{{ end }}
{{- with int .Values.store.port }}{{ $ports = append $ports . | uniq }}{{ end }}
{{- $_ := set $edges "store-clients" (dict "pods" $onStore "egress" (list (dict "peers" (list $external) "ports" $ports))) }}
{{- end }}
{{- with .Values.tracing.endpoint }}
{{- $ports := list (include "zelda.urlPort" . | int) }}{{ with int $.Values.tracing.port }}{{ $ports = append $ports . | uniq }}{{ end }}
{{- $_ := set $edges "tracing" (dict "pods" $services "egress" (list (dict "peers" (list $external) "ports" $ports))) }}
{{- end }}
{{- $toModels := dict }}
{{- if eq .Values.judges.mode "rules" }}
{{- $toModels = dict "components" (list "rules-judge") "ports" (list 8080) }}
{{- $_ := set $edges "rules-judge" (dict "pods" (list "rules-judge") "ingress" (list (dict "components" $callers "ports" (list 8080)))) }}
{{- else if eq .Values.judges.mode "external" }}
{{- $ports := list }}{{ with int .Values.judges.external.port }}{{ $ports = list . }}{{ end }}
{{- if .Values.judges.external.proxy }}{{ $ports = append $ports (include "zelda.urlPort" .Values.judges.external.proxy | int) }}
{{- else }}
{{- range .Values.judges.external.routes }}{{ with . }}{{ if .baseUrl }}{{ $ports = append $ports (include "zelda.urlPort" .baseUrl | int) }}{{ end }}{{ end }}{{ end }}
{{- end }}
{{- $toModels = dict "peers" (list $external) "ports" (uniq $ports) }}
{{- else if .Values.llm.useGateway }}
{{- $toModels = dict "peers" (list $router) "ports" (list 443) }}
{{- else if .Values.llm.enabled }}
{{- $toModels = dict "models" true "ports" (list 8000) }}
{{- else }}
{{- $there := dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" .Values.llm.shared.namespace)) "podSelector" (include "zelda.podsOf" (dict "models" true) | fromYaml) }}
{{- $toModels = dict "peers" (list $there) "ports" (list 8000) }}
{{- end }}
{{- $_ := set $edges "judging" (dict "pods" $judges "egress" (list $toModels)) }}
{{- if $planners }}{{ $_ := set $edges "planning" (dict "pods" $planners "egress" (list $toModels)) }}{{ end }}
{{- if .Values.llm.enabled }}
{{- $direct := ternary (list) (list (dict "components" $callers "ports" (list 8000))) .Values.llm.useGateway }}
{{- $_ := set $edges "models" (dict "models" true "ingress" (concat $direct (list (dict "peers" (list $router) "ports" (list 8000 9002)) (dict "models" true "ports" (list 8000 5557)) (dict "peers" (list $monitoring) "ports" (list 8000 9090)))) "egress" (list (dict "models" true "ports" (list 8000 5557)) (dict "peers" (list $external) "ports" (list 443 6443)) (dict "peers" (list $source) "ports" (list 443)))) }}
{{- with .Values.tracing.modelsEndpoint }}
{{- $_ := set $edges "models-tracing" (dict "models" true "egress" (list (dict "peers" (list $external) "ports" (list (include "zelda.urlPort" . | int))))) }}
{{- end }}
{{- end }}
{{- if $ray }}
{{- $operator := dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $policy.rayOperatorNamespace)) }}
{{- $_ := set $edges "trainer-ray" (dict "pods" (list "trainer") "egress" (list (dict "components" (list "ray-head") "ports" (list 8265)))) }}
{{- /* OpenShift AI's operator takes over policies named <cluster>-head and <cluster>-workers: use other names. */}}
{{- $_ := set $edges "ray-job-server" (dict "pods" (list "ray-head") "ingress" (list (dict "components" (list "trainer") "ports" (list 8265)) (dict "peers" (list $operator) "ports" (list 8265)))) }}
{{- $_ := set $edges "ray" (dict "pods" $ray "ingress" (list (dict "components" $ray) (dict "peers" (list $monitoring) "ports" (list 8080))) "egress" (list (dict "components" $ray))) }}
{{- if .Values.ray.gcsFaultTolerance.enabled }}
{{- $_ := set $edges "ray-redis" (dict "pods" (list "ray-head") "egress" (list (dict "peers" (list $external) "ports" (list (include "zelda.redisPort" .Values.ray.gcsFaultTolerance.redisAddress | int))))) }}
{{- end }}
{{- if include "zelda.rayHeadToken" . }}
{{- $_ := set $edges "ray-api-server" (dict "pods" (list "ray-head") "egress" (list (dict "peers" (list $external) "ports" (list 443 6443)))) }}
{{- end }}
{{- end }}
{{- if ne .Values.expose.kind "none" }}
{{- $_ := set $edges "api" (dict "pods" (list "coordinator") "ingress" (list (dict "peers" (list $router) "ports" (list (ternary 8443 8080 .Values.expose.oauth.enabled))))) }}
{{- end }}
{{- if .Values.expose.oauth.enabled }}
{{- /* The proxy asks the API server, and redeems each log-in at the cluster's OAuth server, which is behind a router. */}}
{{- $_ := set $edges "login" (dict "pods" (list "coordinator") "egress" (list (dict "peers" (list $external) "ports" (list 443 6443)) (dict "peers" (list $router) "ports" (list 443)))) }}
{{- end }}
{{- $_ := set $edges "test" (dict "pods" (list "coordinator") "ingress" (list (dict "components" (list "test") "ports" (list 8080)))) }}
{{- $_ := set $edges "test-client" (dict "pods" (list "test") "egress" (list (dict "components" (list "coordinator") "ports" (list 8080)))) }}
{{- if .Values.secrets.generate }}
{{- $_ := set $edges "secrets" (dict "hook" (include "zelda.secretsHook" .) "pods" (list "secrets") "egress" (list (dict "peers" (list $external) "ports" (list 443 6443)))) }}
{{- end }}
{{- with $provisionHook }}
{{- $_ := set $edges "provision" (dict "hook" . "pods" (list "provision") "egress" (concat (index $edges "bus-clients").egress (index $edges "store-clients").egress)) }}
{{- end }}
{{- $anywhere := list (dict "peers" (list (dict "ipBlock" (dict "cidr" "0.0.0.0/0")) (dict "ipBlock" (dict "cidr" "::/0")))) }}
{{- if include "zelda.api" (dict "root" . "api" "route" "group" "route.openshift.io/v1") }}
{{- /* Builds of deploy/openshift run in this namespace, too: they fetch sources and packages, and push images. */}}
{{- $_ := set $edges "builds" (dict "labelled" "openshift.io/build.name" "egress" $anywhere) }}
{{- end }}
{{- if $policy.clients }}
{{- $clients := list }}
{{- range $policy.clients }}
{{- if eq . $.Release.Namespace }}
{{- $clients = append $clients (dict "podSelector" (include "zelda.podsOf" (dict "labelled" "notebook-name") | fromYaml)) }}
{{- $_ := set $edges "workbenches" (dict "labelled" "notebook-name" "egress" $anywhere) }}
{{- else }}
{{- $clients = append $clients (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" .))) }}
{{- end }}
{{- end }}
{{- $_ := set $edges "clients" (dict "pods" (list "coordinator") "ingress" (list (dict "peers" $clients "ports" (list 8080)))) }}
{{- end }}
{{- $all := dict }}
{{- range $name, $edge := $edges }}{{ $_ := set $all $name (merge $edge (dict "instance" $.Release.Name "dnsNamespaces" $policy.dnsNamespaces)) }}{{ end }}
{{- toYaml $all }}
{{- end }}

{{/* one edge -> spec of a NetworkPolicy */}}
{{- define "zelda.edge" -}}
{{- $instance := .instance }}
podSelector: {{- include "zelda.podsOf" (dict "instance" $instance "components" .pods "models" .models "labelled" .labelled) | nindent 2 }}
policyTypes: [{{ if .ingress }}Ingress{{ if .egress }}, {{ end }}{{ end }}{{ if .egress }}Egress{{ end }}]
{{- range $direction, $word := dict "ingress" "from" "egress" "to" }}
{{- with index $ $direction }}
{{ $direction }}:
  {{- range . }}
  - {{ $word }}:
      {{- if .peers }}{{ toYaml .peers | nindent 6 }}{{ else }}
      - podSelector: {{- include "zelda.podsOf" (merge (dict "instance" $instance) .) | nindent 10 }}
      {{- end }}
    {{- with .ports }}
    ports:
      {{- range . }}
      - {protocol: TCP, port: {{ . }}}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{- if .hook }}
  {{- include "zelda.dnsRule" .dnsNamespaces | nindent 2 }}
{{- end }}
{{- end }}

{{/* namespaces of the DNS pods -> egress rule to them */}}
{{- define "zelda.dnsRule" -}}
- to:
    {{- range . }}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}
    {{- end }}
  ports: # of the DNS pods: 53, on OpenShift 5353
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
{{- end }}

{{/* dict instance and components, or models, or a label of OpenShift's own pods -> selector of these pods */}}
{{- define "zelda.podsOf" -}}
{{- if .models }}
matchLabels: {app.kubernetes.io/part-of: llminferenceservice}
{{- else if .labelled }}
matchExpressions:
  - {key: {{ .labelled }}, operator: Exists}
{{- else }}
matchLabels: {app.kubernetes.io/instance: {{ .instance }}}
matchExpressions:
  - {key: app.kubernetes.io/component, operator: In, values: {{ toJson .components }}}
{{- end }}
{{- end }}

{{/* port of Redis: Ray accepts `host:port` or a URL */}}
{{- define "zelda.redisPort" -}}
{{- include "zelda.urlPort" (ternary . (printf "redis://%s" .) (contains "://" .)) }}
{{- end }}

{{/* port of an address, with the scheme's default */}}
{{- define "zelda.urlPort" -}}
{{- $host := (urlParse .).host }}
{{- if regexMatch ":[0-9]+$" $host }}{{ regexFind "[0-9]+$" $host }}
{{- else }}{{ get (dict "http" "80" "https" "443" "nats" "4222" "tls" "4222" "redis" "6379" "rediss" "6379") (urlParse .).scheme | default "443" }}{{ end }}
{{- end }}
