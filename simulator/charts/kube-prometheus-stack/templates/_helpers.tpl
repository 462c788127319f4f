{{- /* Names are upstream's: of the release and the chart, 26 characters. */}}
{{- define "stack.name" -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 26 | trimSuffix "-" }}
{{- end }}

{{- /* Metadata of an object: list of root context, name, app, and true where the object is in the namespace. */}}
{{- define "stack.metadata" -}}
{{- $root := index . 0 -}}
metadata:
  name: {{ index . 1 }}
  {{- if index . 3 }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "stack.selector" (list $root (index . 2)) | nindent 4 }}
    app.kubernetes.io/managed-by: {{ $root.Release.Service }}
    app.kubernetes.io/part-of: {{ $root.Chart.Name }}
    release: {{ $root.Release.Name }}
{{- end }}

{{- /* List of root context and app. */}}
{{- define "stack.selector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{- /* List of root context, the value `image`, and the tag that it has by default. */}}
{{- define "stack.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 -}}
{{ $root.Values.global.imageRegistry | default $image.registry }}/{{ $image.repository }}:{{ $image.tag | default (index . 2) }}
{{- end }}

{{- /* Where pods run: the values of their component. */}}
{{- define "stack.place" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}

{{- /* Service account with a cluster role: list of root context, name and app. */}}
{{- define "stack.identity" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
apiVersion: v1
kind: ServiceAccount
{{ include "stack.metadata" (list $root $name (index . 2) true) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
{{ include "stack.metadata" (list $root $name (index . 2) false) }}
subjects: [{kind: ServiceAccount, name: {{ $name }}, namespace: {{ $root.Release.Namespace }}}]
roleRef: {kind: ClusterRole, name: {{ $name }}, apiGroup: rbac.authorization.k8s.io}
{{- end }}

{{- /* A Service and who asks it: list of root context, name, app, ports, selector, port of metrics, and where its job
       has another name than the Service, the label with that name and labels of the Service's own. */}}
{{- define "stack.service" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
apiVersion: v1
kind: Service
{{ include "stack.metadata" (list $root $name (index . 2) true) }}
    {{- with index . 7 }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  type: ClusterIP
  ports: {{ toJson (index . 3) }}
  selector: {{ toJson (index . 4) }}
{{- with index . 5 }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
{{ include "stack.metadata" (list $root $name (index $ 2) true) }}
spec:
  {{- with index $ 6 }}
  jobLabel: {{ . }}
  {{- end }}
  selector:
    matchLabels: {{- include "stack.selector" (list $root (index $ 2)) | nindent 6 }}
  endpoints: [{{ toJson . }}]
{{- end }}
{{- end }}
