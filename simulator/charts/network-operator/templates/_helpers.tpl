{{- define "network-operator.name" -}}
{{ .Values.operator.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "network-operator.fullname" -}}
{{- $name := include "network-operator.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{ .Values.operator.fullnameOverride | default $full | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "network-operator.selector" -}}
app.kubernetes.io/name: {{ include "network-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "network-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "network-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "network-operator.image" -}}
{{ .Values.operator.repository }}/{{ .Values.operator.image }}:{{ .Chart.AppVersion }}
{{- end }}

{{- define "network-operator.placement" -}}
{{- with .Values.operator.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.operator.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "network-operator.containerSecurity" -}}
securityContext:
  capabilities: {drop: [ALL]}
  runAsNonRoot: true
  allowPrivilegeEscalation: false
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "network-operator.hookAnnotations" -}}
annotations:
  helm.sh/hook: pre-install,pre-upgrade
  helm.sh/hook-delete-policy: hook-succeeded,before-hook-creation
{{- end }}
