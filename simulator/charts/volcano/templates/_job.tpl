{{- /* The spec of a Volcano job, which Job and JobTemplate share; pod templates are left to the pods' own validation. */}}
{{- define "volcano.jobSpec" -}}
type: object
properties:
  schedulerName: {type: string}
  queue: {type: string}
  priorityClassName: {type: string}
  minAvailable: {type: integer, format: int32}
  minSuccess: {type: integer, format: int32, minimum: 1}
  maxRetry: {type: integer, format: int32}
  ttlSecondsAfterFinished: {type: integer, format: int32}
  runningEstimate: {type: string}
  plugins: {type: object, additionalProperties: {type: array, items: {type: string}}}
  policies: {{ include "volcano.policies" . | nindent 4 }}
  tasks:
    type: array
    items:
      type: object
      properties:
        name: {type: string}
        replicas: {type: integer, format: int32}
        minAvailable: {type: integer, format: int32}
        maxRetry: {type: integer, format: int32}
        topologyPolicy: {type: string}
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
        mountPath: {type: string}
        volumeClaimName: {type: string}
        volumeClaim: {type: object, x-kubernetes-preserve-unknown-fields: true}
{{- end }}

{{- define "volcano.policies" -}}
type: array
items:
  type: object
  properties:
    action: {type: string}
    event: {type: string}
    events: {type: array, items: {type: string}}
    exitCode: {type: integer, format: int32}
    timeout: {type: string}
{{- end }}

{{- /* A list of resource quantities by name. */}}
{{- define "volcano.resources" -}}
{type: object, additionalProperties: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}}
{{- end }}

{{- define "volcano.counts" -}}
{{- range . }}
{{ . }}: {type: integer, format: int32}
{{- end }}
{{- end }}
