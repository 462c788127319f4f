{{- define "gpu-operator.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/component: gpu-operator
{{- end }}

{{- define "gpu-operator.image" -}}
{{ .Values.operator.repository }}/{{ .Values.operator.image }}:{{ .Chart.AppVersion }}
{{- end }}

{{- define "gpu-operator.placement" -}}
{{- with .Values.operator.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.operator.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* A component of the ClusterPolicy as JSON: its values without what is empty; booleans always stay. */}}
{{- define "gpu-operator.component" -}}
{{- $component := dict }}
{{- range $key, $value := . }}
{{- if or (kindIs "bool" $value) (not (empty $value)) }}{{ $_ := set $component $key $value }}{{ end }}
{{- end -}}
{{ toJson $component }}
{{- end }}
