{{- /* The spec of a Volcano job, which Job and JobTemplate share; pod templates are left to the pods' own validation. */}}
{{- define "volcano.jobSpec" -}}
type: object
properties:
  schedulerName: {type: string, maxLength: 63}
  queue: {{ mustMerge (dict "default" "default") (include "volcano.name" . | fromYaml) | toJson }}
  priorityClassName: {{ include "volcano.name" . }}
  minAvailable: {{ include "volcano.count" . }}
  minSuccess: {type: integer, format: int32, minimum: 1}
  maxRetry: {{ mustMerge (dict "default" 3) (include "volcano.count" . | fromYaml) | toJson }}
  ttlSecondsAfterFinished: {{ include "volcano.count" . }}
  runningEstimate: {type: string}
  plugins: {type: object, additionalProperties: {type: array, items: {type: string}}}
  policies: {{ include "volcano.policies" . | nindent 4 }}
  tasks:
    type: array
    minItems: 1
    items:
      type: object
      properties:
        name: {type: string, maxLength: 63, pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
        replicas: {{ include "volcano.count" . }}
        minAvailable: {{ include "volcano.count" . }}
        maxRetry: {{ include "volcano.count" . }}
        topologyPolicy: {type: string, enum: [none, best-effort, restricted, single-numa-node]}
        policies: {{ include "volcano.policies" . | nindent 10 }}
        dependsOn:
          type: object
          properties:
            iteration: {type: string}
            name: {type: array, items: {type: string}}
        template: {type: object, x-kubernetes-preserve-unknown-fields: true}
  volumes:
    type: array
    items:
      type: object
      required: [mountPath]
      properties:
        mountPath: {type: string, minLength: 1, pattern: "^[^:]+$"}
        volumeClaimName: {type: string, maxLength: 253}
        volumeClaim: {type: object, x-kubernetes-preserve-unknown-fields: true}
{{- end }}

{{- define "volcano.policies" -}}
{{- $event := dict "type" "string" "enum" (list "*" "PodPending" "PodRunning" "PodFailed" "PodEvicted" "Unknown"
  "TaskCompleted" "OutOfSync" "CommandIssued" "JobUpdated" "TaskFailed") -}}
type: array
items:
  type: object
  properties:
    action: {type: string}
    event: {{ toJson $event }}
    events: {type: array, items: {{ toJson $event }}}
    exitCode: {type: integer, format: int32}
    timeout: {type: string}
{{- end }}

{{- /* A DNS subdomain. */}}
{{- define "volcano.name" -}}
{type: string, maxLength: 253, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'}
{{- end }}

{{- define "volcano.count" -}}
{type: integer, format: int32, minimum: 0}
{{- end }}

{{- /* A list of resource quantities by name. */}}
{{- define "volcano.resources" -}}
{type: object, additionalProperties: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}}
{{- end }}

{{- define "volcano.counts" -}}
{{- range . }}
{{ . }}: {{ include "volcano.count" $ }}
{{- end }}
{{- end }}
