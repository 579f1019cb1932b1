// Reads a manifest as the API server does, into the types of the API itself: a field that it does not know, a value of another
// kind or a name twice is an error. Then what must hold of it.
//
//	go run . MANIFEST
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . MANIFEST")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL", err)
		os.Exit(1)
	}
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	set, err := read(text)
	if err != nil {
		return err
	}
	if err := holds(set); err != nil {
		return err
	}
	// The same with mistakes in it must be refused, or nothing was checked.
	for _, mistake := range [][2]string{
		{"hostPID: true", "hostPid: true"},
		{"readOnly: true", "readonly: true"},
		{"containerPort: 9950", "containerPort: many"},
		{"drop: [ALL]", "drop: [NET_RAW]"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"},
		{"fieldPath: spec.nodeName", "fieldPath: spec.node"},
		{"name: tracing\n          hostPath", "name: tracefs\n          hostPath"},
	} {
		if !bytes.Contains(text, []byte(mistake[0])) {
			return fmt.Errorf("there is no %q", mistake[0])
		}
		wrong := bytes.Replace(text, []byte(mistake[0]), []byte(mistake[1]), 1)
		set, err := read(wrong)
		if err == nil {
			err = holds(set)
		}
		if err == nil {
			return fmt.Errorf("%q is not noticed", mistake[1])
		}
	}
	fmt.Println("ok", path)
	return nil
}

// What a manifest consists of.
type documents struct {
	namespace core.Namespace
	account   core.ServiceAccount
	daemons   apps.DaemonSet
}

func read(text []byte) (*documents, error) {
	var all documents
	kinds := map[string]any{
		"v1 Namespace": &all.namespace, "v1 ServiceAccount": &all.account, "apps/v1 DaemonSet": &all.daemons,
	}
	for i, part := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(part, &head); err != nil {
			return nil, err
		}
		into, known := kinds[head.APIVersion+" "+head.Kind]
		if !known {
			return nil, fmt.Errorf("document %d: %s %s is not expected, or there twice", i+1, head.APIVersion, head.Kind)
		}
		delete(kinds, head.APIVersion+" "+head.Kind)
		text, err := yaml.YAMLToJSONStrict(part)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		// Unlike encoding/json, it tells hostPid from hostPID.
		unknown, err := json.UnmarshalStrict(text, into)
		if err := errors.Join(append(unknown, err)...); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	if len(kinds) > 0 {
		return nil, fmt.Errorf("missing: %v", kinds)
	}
	return &all, nil
}

func holds(all *documents) error {
	set := all.daemons
	pod := set.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		return errors.New("not one container")
	}
	container := pod.Containers[0]
	secure := container.SecurityContext
	yes := func(b *bool) bool { return b != nil && *b }
	no := func(b *bool) bool { return b != nil && !*b }
	added := []core.Capability{"BPF", "PERFMON", "DAC_READ_SEARCH", "SYS_RESOURCE"}
	mounts, volumes := map[string]core.VolumeMount{}, map[string]string{}
	for _, mount := range container.VolumeMounts {
		mounts[mount.Name] = mount
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath == nil {
			return fmt.Errorf("%s is no path of the node", volume.Name)
		}
		volumes[volume.Name] = volume.HostPath.Path
	}
	for name, mount := range mounts {
		if volumes[name] != mount.MountPath {
			return fmt.Errorf("%s is mounted from %q at %s", name, volumes[name], mount.MountPath)
		}
	}
	node := slices.ContainsFunc(container.Env, func(e core.EnvVar) bool {
		return e.Name == "NODE_NAME" && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil &&
			e.ValueFrom.FieldRef.FieldPath == "spec.nodeName"
	})
	port := slices.ContainsFunc(container.Ports, func(p core.ContainerPort) bool { return p.Name == "metrics" && p.ContainerPort == 9950 })
	probes := func(probe *core.Probe) bool {
		return probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Path == "/healthz" && probe.HTTPGet.Port.StrVal == "metrics"
	}
	labels := set.Spec.Template.Labels
	selected := set.Spec.Selector != nil && len(set.Spec.Selector.MatchLabels) > 0
	for key, value := range set.Spec.Selector.MatchLabels {
		selected = selected && labels[key] == value
	}
	for what, is := range map[string]bool{
		"all capabilities are dropped":    secure != nil && secure.Capabilities != nil && slices.Equal(secure.Capabilities.Drop, []core.Capability{"ALL"}),
		"those that are needed are added": secure != nil && secure.Capabilities != nil && slices.Equal(secure.Capabilities.Add, added),
		"the root is read-only":           secure != nil && yes(secure.ReadOnlyRootFilesystem),
		"it is not privileged":            secure != nil && no(secure.Privileged) && no(secure.AllowPrivilegeEscalation),
		"seccomp is the runtime's":        secure != nil && secure.SeccompProfile != nil && secure.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault,
		"the node's processes are seen":   pod.HostPID && !pod.HostNetwork && !pod.HostIPC,
		"no token is mounted":             no(pod.AutomountServiceAccountToken) && no(all.account.AutomountServiceAccountToken),
		"the account is there":            pod.ServiceAccountName == all.account.Name && all.account.Namespace == set.Namespace && all.namespace.Name == set.Namespace,
		"tracefs is read-only":            mounts["tracing"].ReadOnly && mounts["tracing"].MountPath == "/sys/kernel/tracing",
		"cgroups are read-only":           mounts["cgroup"].ReadOnly && mounts["cgroup"].MountPath == "/sys/fs/cgroup",
		"the node is named":               node,
		"the port is named":               port,
		"it is probed":                    probes(container.StartupProbe) && probes(container.LivenessProbe) && probes(container.ReadinessProbe),
		"the selector finds its own pods": selected,
		"memory is bounded":               !container.Resources.Limits.Memory().IsZero(),
	} {
		if !is {
			return fmt.Errorf("it does not hold that %s", what)
		}
	}
	return nil
}
