{{- /* The value of one component, else the default of all: list of root context, component, key, default's key. */}}
{{- define "volcano.choice" -}}
{{- $custom := (index . 0).Values.custom -}}
{{- with index $custom (printf "%s_%s" (index . 1) (index . 2)) | default (index $custom (printf "default_%s" (index . 3))) -}}
{{ toJson . }}
{{- end }}
{{- end }}

{{- /* Where and as whom pods of a component run: list of root context and component. */}}
{{- define "volcano.podSpec" -}}
{{- $root := index . 0 }}{{ $component := index . 1 -}}
priorityClassName: system-cluster-critical
{{- with include "volcano.choice" (list $root $component "tolerations" "tolerations") }}
tolerations: {{ . }}
{{- end }}
{{- with include "volcano.choice" (list $root $component "ns" "ns") }}
nodeSelector: {{ . }}
{{- end }}
{{- with include "volcano.choice" (list $root $component "affinity" "affinity") }}
affinity: {{ . }}
{{- end }}
{{- with include "volcano.choice" (list $root $component "sc" "sc") }}
securityContext: {{ . }}
{{- end }}
{{- with $root.Values.basic.image_pull_secret }}
imagePullSecrets: [{name: {{ . }}}]
{{- end }}
{{- end }}

{{- /* Image, pull policy, resources and security of a container: list of root context, component, security key. */}}
{{- define "volcano.container" -}}
{{- $root := index . 0 }}{{ $component := index . 1 }}{{ $basic := $root.Values.basic }}
{{- $tag := index $basic (printf "%s_image_tag_version" $component) | default $basic.image_tag_version -}}
image: {{ $basic.image_registry }}/{{ index $basic (printf "%s_image_name" $component) }}:{{ $tag }}
imagePullPolicy: {{ $basic.image_pull_policy }}
{{- with index $root.Values.custom (printf "%s_resources" $component) }}
resources: {{ toJson . }}
{{- end }}
{{- with include "volcano.choice" (list $root $component (index . 2) "csc") }}
securityContext: {{ . }}
{{- end }}
{{- end }}

{{- /* Labels of the user's: list of root context and, if any, the key of the component's own labels. */}}
{{- define "volcano.labels" -}}
{{- $custom := (index . 0).Values.custom }}
{{- $labels := deepCopy ($custom.common_labels | default dict) }}
{{- range $key := rest . }}
{{- $labels = merge (deepCopy (index $custom $key | default dict)) $labels }}
{{- end }}
{{- with $labels }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "volcano.metadata" -}}
{{- $root := index . 0 -}}
metadata:
  name: {{ $root.Release.Name }}-{{ index . 1 }}
  {{- if index . 2 }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  {{- with include "volcano.labels" (list $root) }}
  labels: {{- . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Service account, cluster role's binding: list of root context and account name. */}}
{{- define "volcano.identity" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
apiVersion: v1
kind: ServiceAccount
{{ include "volcano.metadata" (list $root $name true) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
{{ include "volcano.metadata" (list $root (printf "%s-role" $name) false) }}
subjects: [{kind: ServiceAccount, name: {{ $root.Release.Name }}-{{ $name }}, namespace: {{ $root.Release.Namespace }}}]
roleRef: {kind: ClusterRole, name: {{ $root.Release.Name }}-{{ $name }}, apiGroup: rbac.authorization.k8s.io}
{{- end }}

{{- define "volcano.service" -}}
{{- $root := index . 0 }}{{ $app := index . 2 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ $root.Release.Name }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app: {{ $app }}
    {{- with include "volcano.labels" (list $root) }}{{ . | nindent 4 }}{{ end }}
spec:
  type: ClusterIP
  selector: {app: {{ $app }}}
  {{- with $root.Values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with $root.Values.service.ipFamilies }}
  ipFamilies: {{ toJson . }}
  {{- end }}
  ports: [{{ toJson (index . 3) }}]
{{- end }}
