{{- define "blob.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "blob.labels" -}}
{{ include "blob.selector" . }}
app.kubernetes.io/component: csi-driver
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.customLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Metadata of an object: list of root context, name and, where the object is in the namespace, true. */}}
{{- define "blob.metadata" -}}
{{- $root := index . 0 -}}
metadata:
  name: {{ index . 1 }}
  {{- if index . 2 }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    app: {{ index . 1 }}
    {{- include "blob.labels" $root | nindent 4 }}
{{- end }}

{{- /* Metadata of pods: list of root context and the name of what makes them. */}}
{{- define "blob.podMetadata" -}}
{{- $root := index . 0 -}}
metadata:
  labels:
    app: {{ index . 1 }}
    {{- include "blob.labels" $root | nindent 4 }}
    {{- with $root.Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $root.Values.podAnnotations }}
  annotations: {{ toJson . }}
  {{- end }}
{{- end }}

{{- /* A container: list of root context, its name, its entry under `image`, its resources and its arguments. */}}
{{- define "blob.container" -}}
{{- $root := index . 0 }}{{ $image := index $root.Values.image (index . 2) -}}
name: {{ index . 1 }}
image: {{ hasPrefix "/" $image.repository | ternary $root.Values.image.baseRepo "" }}{{ $image.repository }}:{{ $image.tag }}
imagePullPolicy: {{ $image.pullPolicy }}
resources: {{ toJson (index . 3) }}
args: {{ toJson (index . 4) }}
{{- end }}

{{- /* What the pods of controller and node share: list of root context and the values of the one. */}}
{{- define "blob.podSpec" -}}
{{- $root := index . 0 }}{{ $values := index . 1 -}}
priorityClassName: {{ $root.Values.priorityClassName }}
nodeSelector: {{ merge (dict "kubernetes.io/os" "linux") $values.nodeSelector | toJson }}
{{- with $values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext: {{ merge (dict "seccompProfile" (dict "type" "RuntimeDefault")) $root.Values.securityContext | toJson }}
{{- end }}
