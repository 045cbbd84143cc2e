{{/* YAML list of sentences, `value: problem: remedy`, about values that conflict with each other */}}
{{- define "zelda.problems" -}}
{{- $v := .Values }}{{ $problems := list }}
{{- $ray := eq $v.services.trainer.backend "ray" }}
{{- $name := include "zelda.fullname" . }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}{{ $problems = append $problems (printf "release name %s: Services take its name, which must begin with a letter and hold only letters, digits and hyphens: choose another, or set fullnameOverride" $name) }}{{ end }}
{{- $byTag := false }}{{ range $v.images.digests }}{{ if not . }}{{ $byTag = true }}{{ end }}{{ end }}
{{- if and $byTag (not $v.images.tag) (contains "+" .Chart.AppVersion) }}{{ $problems = append $problems (printf "images.tag: the chart's appVersion %s holds a +, which no tag may: name the images' tag, or all images.digests" .Chart.AppVersion) }}{{ end }}
{{- $problems = concat $problems (include "zelda.problems.apis" . | fromYamlArray) (include "zelda.problems.secrets" . | fromYamlArray) (include "zelda.problems.judging" . | fromYamlArray) (include "zelda.problems.ray" . | fromYamlArray) }}
{{- if and $v.store.keepSegmentsDays (eq $v.store.mode "bucketclaim") }}{{ $problems = append $problems "store.keepSegmentsDays: a claimed bucket has no lifecycle rule: leave it null with store.mode bucketclaim, and set an expiry in the storage system" }}{{ end }}
{{- if and $v.tracing.modelsEndpoint $v.llm.enabled (ne $v.platform.odhVersion "3.5") }}{{ $problems = append $problems (printf "tracing.modelsEndpoint: models of release %s have no setting for traces: leave it empty, or set platform.odhVersion to 3.5" $v.platform.odhVersion) }}{{ end }}
{{- if $v.expose.oauth.enabled }}
{{- if eq $v.expose.kind "ingress" }}{{ $problems = append $problems "expose.oauth.enabled: an Ingress bypasses the log-in proxy, because only a Route trusts its certificate: set expose.kind to route, or expose.oauth.enabled to false" }}{{ end }}
{{- if eq $v.expose.kind "none" }}{{ $problems = append $problems "expose.oauth.enabled: nothing leads to the log-in proxy: set expose.kind to route, or expose.oauth.enabled to false" }}{{ end }}
{{- end }}
{{- if and (eq $v.bus.mode "external") (hasPrefix "tls://" $v.bus.url) (not $v.bus.tls.enabled) }}{{ $problems = append $problems "bus.url: tls:// needs an authority to trust: set bus.tls.enabled and bus.tls.ca, or use nats://" }}{{ end }}
{{- with $v.services.judge.autoscaling }}
{{- if and (ne .mode "none") (gt (int .min) (int .max)) }}{{ $problems = append $problems (printf "services.judge.autoscaling: min %d is above max %d: set both" (int .min) (int .max)) }}{{ end }}
{{- end }}
{{- range $service := list "coordinator" "trainer" "judge" "rewardmodel" "exporter" }}
{{- range $duplicate := include "zelda.duplicateVariables" (dict "root" $ "service" $service) | fromYamlArray }}{{ $problems = append $problems (printf "services.%s.env.%s: the chart sets this variable from other values: remove it" $service $duplicate) }}{{ end }}
{{- end }}
{{- range $kind := list "evaluation" "epoch" "rewardmodel" }}{{ $job := index $v.jobs $kind }}
{{- $own := list }}{{ range include (printf "zelda.ownEnv.%s" $kind) $ | fromYamlArray }}{{ $own = append $own .name }}{{ end }}
{{- range $variable, $_ := $job.env }}{{ if or (has $variable $own) (regexMatch "^ZELDA_(STORE__|JUDGES_FILE|LOG__|DRIVER__RAY_ADDRESS|DRIVER__PLANNER_FILE)" $variable) }}{{ $problems = append $problems (printf "jobs.%s.env.%s: the chart sets this variable from other values: remove it" $kind $variable) }}{{ end }}{{ end }}
{{- end }}
{{- toYaml $problems }}
{{- end }}

{{/* variables of a job beside those of store, log and Ray, as its pods have them */}}
{{- define "zelda.ownEnv.evaluation" -}}
{{ include "zelda.judgingEnv" . }}
{{- end }}
{{- define "zelda.ownEnv.epoch" -}}
{{ include "zelda.romEnv" (dict "root" . "variable" "ZELDA_DRIVER__ROM") }}
{{- if .Values.ray.head.gpus }}
- {name: ZELDA_DRIVER__LEARNER_DEVICE}
{{- end }}
{{- end }}
{{- define "zelda.ownEnv.rewardmodel" -}}
{{- end }}

{{/* switched-off APIs that other values need */}}
{{- define "zelda.problems.apis" -}}
{{- $v := .Values }}{{ $problems := list }}
{{- $needs := list
  (list "ray" (eq $v.services.trainer.backend "ray") "services.trainer.backend ray" "services.trainer.backend to local")
  (list "keda" (eq $v.services.judge.autoscaling.mode "keda") "services.judge.autoscaling.mode keda" "the mode to cpu or none")
  (list "route" (eq $v.expose.kind "route") "expose.kind route" "expose.kind to none or ingress")
  (list "objectBucketClaim" (eq $v.store.mode "bucketclaim") "store.mode bucketclaim" "store.mode to external or embedded")
  (list "llmInferenceService" $v.llm.enabled "llm.enabled" "llm.enabled to false") }}
{{- range $needs }}
{{- if and (eq (index $v.apis (index . 0)) "off") (index . 1) }}{{ $problems = append $problems (printf "apis.%s: %s needs it: set apis.%s to on, or %s" (index . 0) (index . 2) (index . 0) (index . 3)) }}{{ end }}
{{- end }}
{{- toYaml $problems }}
{{- end }}

{{/* credentials that nobody creates */}}
{{- define "zelda.problems.secrets" -}}
{{- $v := .Values }}{{ $problems := list }}
{{- $needs := list
  (list "bus.secretName" $v.bus.secretName true)
  (list "store.secretName" $v.store.secretName (ne $v.store.mode "bucketclaim"))
  (list "api.tokenSecret" $v.api.tokenSecret true)
  (list "expose.oauth.cookieSecret" (or $v.expose.oauth.cookieSecret $v.api.tokenSecret) $v.expose.oauth.enabled) }}
{{- if not $v.secrets.generate }}
{{- range $needs }}
{{- if and (index . 2) (not (index . 1)) }}{{ $problems = append $problems (printf "%s: no Secret is named and none is generated: name one, or set secrets.generate to true" (index . 0)) }}{{ end }}
{{- end }}
{{- end }}
{{- if and $v.bus.tls.enabled (not $v.bus.tls.ca.name) }}{{ $problems = append $problems "bus.tls.ca.name: the services must know whom to trust: name the ConfigMap with the authority" }}{{ end }}
{{- toYaml $problems }}
{{- end }}

{{- define "zelda.problems.judging" -}}
{{- $v := .Values }}{{ $problems := list }}
{{- $llmd := eq $v.judges.mode "llmd" }}
{{- if and $llmd (not $v.llm.enabled) (not $v.llm.shared.namespace) }}{{ $problems = append $problems "judges.mode llmd: no models: set llm.enabled to true, or llm.shared.namespace to the namespace of existing ones" }}{{ end }}
{{- if and $v.llm.enabled $v.llm.shared.namespace }}{{ $problems = append $problems "llm.shared.namespace: the release creates its own models: set llm.enabled to false to use those" }}{{ end }}
{{- $names := list }}{{ range $v.judges.judges }}{{ $names = append $names .name }}{{ end }}
{{- if ne (len $names) (len (uniq $names)) }}{{ $problems = append $problems (printf "judges.judges: names must differ, not %s" (join ", " $names)) }}{{ end }}
{{- $objects := list }}{{ range $v.llm.models }}{{ with . }}{{ $objects = append $objects .name }}{{ end }}{{ end }}
{{- if ne (len $objects) (len (uniq $objects)) }}{{ $problems = append $problems (printf "llm.models: names must differ, not %s" (sortAlpha $objects | join ", ")) }}{{ end }}
{{- range $votes := prepend (include "zelda.votesOfJudges" . | fromJsonArray) $v.judges.votes }}
{{- range $i, $size := $votes }}{{ if $i }}{{ if ge (int (index $votes (sub $i 1))) (int $size) }}{{ $problems = append $problems (printf "judges.votes: the numbers must rise, not %s: for example [3, 7, 11]" (toJson $votes)) }}{{ end }}{{ end }}{{ end }}
{{- end }}
{{- range $v.judges.judges }}
{{- $routes := ternary $v.judges.external.routes $v.llm.models (eq $v.judges.mode "external") }}
{{- if and (ne $v.judges.mode "rules") (not (index $routes .route)) }}{{ $problems = append $problems (printf "judges.judges: %s has the route %s, which does not exist: use one of %s" .name .route (keys $routes | sortAlpha | join ", ")) }}{{ end }}
{{- end }}
{{- if eq $v.judges.mode "rules" }}{{ range $v.judges.judges }}
{{- if or (eq (.asking | default "votes") "probabilities") (eq (.facts | default "full") "short") .examples }}{{ $problems = append $problems (printf "judges.judges: %s has asking, facts or examples, which the rules judge does not know: leave them out, or set judges.mode to llmd or external" .name) }}{{ end }}
{{- end }}{{ end }}
{{- with $v.judges.weights }}
{{- $sum := round (addf .progress .dialog .puzzle .novelty .efficiency) 6 }}
{{- if ne $sum 1.0 }}{{ $problems = append $problems (printf "judges.weights: their sum is %v: make it 1" $sum) }}{{ end }}
{{- $rated := 0.0 }}{{ $weights := . }}{{ range $v.judges.judges }}{{ range .dimensions }}{{ $rated = addf $rated (index $weights .) }}{{ end }}{{ end }}
{{- if eq $rated 0.0 }}{{ $problems = append $problems "judges.weights: all that the judges rate has weight 0, so no segment would get a score: raise one" }}{{ end }}
{{- end }}
{{- if $v.planner.enabled }}
{{- $routes := ternary $v.judges.external.routes $v.llm.models (eq $v.judges.mode "external") }}
{{- $asked := list }}
{{- range $mode, $route := $v.planner.routes }}{{ with $route }}{{ $asked = append $asked $mode }}
{{- if and (ne $v.judges.mode "rules") (not (index $routes .route)) }}{{ $problems = append $problems (printf "planner.routes.%s: the route %s does not exist: use one of %s" $mode .route (keys $routes | sortAlpha | join ", ")) }}{{ end }}
{{- end }}{{ end }}
{{- if not $asked }}{{ $problems = append $problems "planner.routes: nothing can be asked: give a route, or set planner.enabled to false" }}{{ end }}
{{- if and $v.jobs.epoch.enabled (include "zelda.plannerAccountToken" .) (include "zelda.rayAuthProxy" .) }}{{ $problems = append $problems "planner.enabled: the operator names the account of an epoch job's head when the job starts, so nobody can let it call the models: set jobs.epoch.enabled to false, or llm.auth to false" }}{{ end }}
{{- end }}
{{- toYaml $problems }}
{{- end }}

{{- define "zelda.votesOfJudges" -}}
{{- $all := list }}{{ range .Values.judges.judges }}{{ with .votes }}{{ $all = append $all . }}{{ end }}{{ end }}{{ toJson $all }}
{{- end }}

{{- define "zelda.problems.ray" -}}
{{- $v := .Values }}{{ $problems := list }}
{{- $workers := $v.ray.workers }}{{ $min := int $workers.min }}{{ $max := int $workers.max }}
{{- if eq $v.services.trainer.backend "ray" }}
{{- if gt $min $max }}{{ $problems = append $problems (printf "ray.workers: min %d is above max %d: set both" $min $max) }}
{{- else if and (ne $min $max) (not $v.ray.autoscaling) }}{{ $problems = append $problems (printf "ray.workers.max: %d has no effect without ray.autoscaling: set it to min, which is %d" $max $min) }}{{ end }}
{{- if and $v.ray.autoscaling (include "zelda.queueLabel" .) }}{{ $problems = append $problems "ray.autoscaling: Kueue refuses a queued RayCluster with autoscaling: set ray.autoscaling to false, or apis.kueue to off" }}{{ end }}
{{- if $v.kueue.admin.enabled }}
{{- $needed := include "zelda.rayRequests" . | fromJson }}
{{- if gt (int64 $needed.cpu) (include "zelda.millicores" $v.kueue.admin.cpu | int64) }}{{ $problems = append $problems (printf "kueue.admin.cpu: %s is below the %dm that Ray's pods request, so Kueue would never admit them: raise it, or lower ray.workers" $v.kueue.admin.cpu (int64 $needed.cpu)) }}{{ end }}
{{- if gt (int64 $needed.memory) (include "zelda.mebibytes" $v.kueue.admin.memory | int64) }}{{ $problems = append $problems (printf "kueue.admin.memory: %s is below the %dMi that Ray's pods request, so Kueue would never admit them: raise it, or lower ray.workers" $v.kueue.admin.memory (int64 $needed.memory)) }}{{ end }}
{{- if gt (int $v.ray.head.gpus) (int $v.kueue.admin.gpus) }}{{ $problems = append $problems (printf "kueue.admin.gpus: %d is below the %d that Ray's head requests, so Kueue would never admit it: raise it, or set ray.head.gpus to 0" (int $v.kueue.admin.gpus) (int $v.ray.head.gpus)) }}{{ end }}
{{- end }}
{{- else }}
{{- if $v.ray.tokenSecret }}{{ $problems = append $problems "ray.tokenSecret: nothing calls Ray's job server: set services.trainer.backend to ray, or leave it empty" }}{{ end }}
{{- if $v.ray.head.gpus }}{{ $problems = append $problems "ray.head.gpus: there is no Ray head: set services.trainer.backend to ray, or 0" }}{{ end }}
{{- if $v.jobs.epoch.enabled }}{{ $problems = append $problems "jobs.epoch.enabled: the job needs Ray: set services.trainer.backend to ray, or start the epoch with `zelda run start`" }}{{ end }}
{{- end }}
{{- toYaml $problems }}
{{- end }}

{{/* JSON {cpu, memory}: millicores and MiB that head and workers request together */}}
{{- define "zelda.rayRequests" -}}
{{- $head := .Values.ray.head.resources.requests }}{{ $worker := .Values.ray.workers.resources.requests }}{{ $n := int64 .Values.ray.workers.max }}
{{- $cpu := add (include "zelda.millicores" $head.cpu | int64) (mul $n (include "zelda.millicores" $worker.cpu | int64)) }}
{{- $memory := add (include "zelda.mebibytes" $head.memory | int64) (mul $n (include "zelda.mebibytes" $worker.memory | int64)) }}
{{- dict "cpu" $cpu "memory" $memory | toJson }}
{{- end }}

{{/* a Quantity -> whole millicores, or whole MiB */}}
{{- define "zelda.millicores" -}}
{{- if hasSuffix "m" . }}{{ trimSuffix "m" . | int64 }}{{ else }}{{ mulf (float64 .) 1000 | int64 }}{{ end }}
{{- end }}
{{- define "zelda.mebibytes" -}}
{{- $number := regexFind "^[0-9.]+" . | float64 }}
{{- $unit := get (dict "Ki" 0.0009765625 "Mi" 1.0 "Gi" 1024.0 "Ti" 1048576.0 "k" 0.00095367 "M" 0.95367432 "G" 953.67431641 "T" 953674.31640625) (regexFind "[A-Za-z]+$" .) | default 0.00000095 }}
{{- mulf $number $unit | int64 }}
{{- end }}

{{/* dict root service -> YAML list of the variables in services.<service>.env that the chart sets, too */}}
{{- define "zelda.duplicateVariables" -}}
{{- $root := .root }}
{{- $own := concat (include "zelda.storeEnv" $root | fromYamlArray) (include "zelda.busEnv" $root | fromYamlArray) (include "zelda.tracingEnv" $root | fromYamlArray) (include (printf "zelda.env.%s" .service) $root | fromYamlArray) }}
{{- $names := list "ZELDA_HTTP__HOST" "ZELDA_HTTP__PORT" "ZELDA_SHUTDOWN__DRAIN_S" }}{{ range $own }}{{ $names = append $names .name }}{{ end }}
{{- $found := list }}
{{- range $variable, $_ := (index $root.Values.services .service).env }}{{ if has $variable $names }}{{ $found = append $found $variable }}{{ end }}{{ end }}
{{- toYaml $found }}
{{- end }}
