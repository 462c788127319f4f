{{- define "nfd.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "nfd.fullname" -}}
{{- $name := include "nfd.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{ .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "nfd.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "nfd.selector" -}}
app.kubernetes.io/name: {{ include "nfd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nfd.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "nfd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "nfd.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Service account of one component: list of root context, component name, name suffix. */}}
{{- define "nfd.account" -}}
{{- $root := index . 0 }}{{ $values := index $root.Values (index . 1) }}
{{- $made := printf "%s%s" (include "nfd.fullname" $root) (index . 2) -}}
{{ $values.serviceAccount.name | default (ternary $made "default" $values.serviceAccount.create) }}
{{- end }}

{{- /* What all pods share; list of root context and the component's values. */}}
{{- define "nfd.podSpec" -}}
{{- $root := index . 0 }}{{ $values := index . 1 -}}
dnsPolicy: {{ $values.dnsPolicy }}
hostNetwork: {{ $values.hostNetwork }}
{{- if kindIs "bool" $values.hostUsers }}
hostUsers: {{ $values.hostUsers }}
{{- end }}
{{- with $values.priorityClassName | default $root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $root.Values.imagePullSecrets | default ($root.Values.global).imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with $values.podSecurityContext }}
securityContext: {{ toJson . }}
{{- end }}
{{- with $values.initContainers }}
initContainers: {{ toJson . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with $values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{- /* A probe of /healthz with the fields that are set; list of the probe's name and its values. */}}
{{- define "nfd.probe" -}}
{{- $probe := dict "httpGet" (dict "path" "/healthz" "port" "http") }}
{{- range $key, $value := index . 1 }}{{ if $value }}{{ $_ := set $probe $key $value }}{{ end }}{{ end -}}
{{ index . 0 }}: {{ toJson $probe }}
{{- end }}

{{- /* Labels and annotations of the objects that run after the release is gone. */}}
{{- define "nfd.pruneMetadata" }}
  labels: {{- include "nfd.labels" . | nindent 4 }}
  annotations:
    helm.sh/hook: post-delete
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
