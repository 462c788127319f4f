{{- define "nfs.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $fullname := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $fullname .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "nfs.account" -}}
{{- default (.Values.serviceAccount.create | ternary (include "nfs.fullname" .) "default") .Values.serviceAccount.name -}}
{{- end }}

{{- define "nfs.provisioner" -}}
{{- default (printf "cluster.local/%s" (include "nfs.fullname" .)) .Values.storageClass.provisionerName -}}
{{- end }}

{{- define "nfs.selector" -}}
app: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
release: {{ .Release.Name }}
{{- end }}

{{- define "nfs.labels" -}}
chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
heritage: {{ .Release.Service }}
{{ include "nfs.selector" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Metadata of an object: list of root context and name. */}}
{{- define "nfs.metadata" -}}
metadata:
  name: {{ index . 1 }}
  labels: {{- include "nfs.labels" (index . 0) | nindent 4 }}
{{- end }}
