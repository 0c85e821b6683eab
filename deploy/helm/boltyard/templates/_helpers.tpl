{{- define "boltyard.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "boltyard.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* usage: include "boltyard.selector" (list $ "api") */}}
{{- define "boltyard.selector" -}}
app.kubernetes.io/name: boltyard
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "boltyard.labels" -}}
{{ include "boltyard.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{/* Labels of the pods that serve requests, for selectors of Services and policies. */}}
{{- define "boltyard.serving" -}}
app.kubernetes.io/name: boltyard
app.kubernetes.io/instance: {{ .Release.Name }}
boltyard.dev/serves: "true"
{{- end }}

{{- define "boltyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "boltyard.containerSecurity" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
{{- end }}

{{- define "boltyard.isSandbox" -}}
{{- if eq .Values.nodes.software "sandbox" }}true{{ end -}}
{{- end }}

{{/* A list of the secrets that are set, with variable, Secret and key. A command, which has no role, gets only what opens the database. */}}
{{- define "boltyard.secretFiles" -}}
{{- $values := .root.Values -}}
{{- $s := $values.secrets -}}
{{- $all := dict "DATABASE_URL" $s.databaseUrl "MASTER_KEY" $s.masterKey -}}
{{- if .role -}}
{{- $all = merge $all (dict "MASTER_KEY_PREVIOUS" $s.masterKeyPrevious "OPERATOR_TOKEN" $s.operatorToken "REDIS_URL" $s.redisUrl "METRICS_TOKEN" $s.metricsToken "OTEL_EXPORTER_OTLP_HEADERS" $s.otlpHeaders) -}}
{{- if include "boltyard.isSandbox" .root -}}
{{- $_ := set $all "SANDBOX_HUB_NODE_TOKEN" (dict "name" $values.sandboxHub.secretName "key" "node-token") -}}
{{- $_ := set $all "SANDBOX_HUB_CONTROL_TOKEN" (dict "name" $values.sandboxHub.secretName "key" "control-token") -}}
{{- end -}}
{{- end -}}
{{- range $variable, $from := $all }}
{{- if $from.name }}
- { variable: {{ $variable }}, name: {{ $from.name | quote }}, key: {{ $from.key | quote }} }
{{- end }}
{{- end }}
{{- end }}

{{/* A container that runs the service or, without a role, one of its commands. usage: include "boltyard.container" (dict "root" $ "role" "api" "resources" …) */}}
{{- define "boltyard.container" -}}
image: {{ include "boltyard.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with .args }}
args: {{ toJson . }}
{{- end }}
{{- if .role }}
envFrom:
  - configMapRef: { name: {{ include "boltyard.name" .root }} }
{{- end }}
env:
  {{- if .role }}
  - { name: ROLE, value: {{ .role }} }
  {{- else }}
  # A command runs before the ConfigMap exists and does not listen, so HOST only has to be valid.
  - { name: HOST, value: 127.0.0.1 }
  {{- end }}
  {{- range fromYamlArray (include "boltyard.secretFiles" .) }}
  - { name: {{ .variable }}_FILE, value: /run/secrets/boltyard/{{ .variable }} }
  {{- end }}
securityContext:
  {{- include "boltyard.containerSecurity" .root | nindent 2 }}
{{- with .resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - { name: data, mountPath: /var/lib/boltyard }
  - { name: tmp, mountPath: /tmp }
  - { name: secrets, mountPath: /run/secrets/boltyard, readOnly: true }
{{- end }}

{{/* For a container that runs the service in any role. A liveness probe never asks for the database: a restart would not bring it back. */}}
{{- define "boltyard.probes" -}}
startupProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 2, failureThreshold: 60 }
livenessProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
readinessProbe: { httpGet: { path: /readyz, port: http }, periodSeconds: 5, timeoutSeconds: 3 }
{{- end }}

{{/* Nothing on these volumes needs to be kept: nodes have their own, and everything else is in PostgreSQL. usage: as boltyard.container */}}
{{- define "boltyard.volumes" -}}
- { name: data, emptyDir: {} }
- { name: tmp, emptyDir: {} }
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range fromYamlArray (include "boltyard.secretFiles" .) }}
      - secret:
          name: {{ .name }}
          items: [{ key: {{ .key }}, path: {{ .variable }} }]
      {{- end }}
{{- end }}

{{- define "boltyard.scheduling" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}
