// Kubeflow's training operator, whose own main program listens on every interface and keeps its certificates in /tmp.
// This one runs the controllers and webhooks of PyTorchJob and JAXJob on loopback:
// training-operator WEBHOOK-PORT HEALTH-PORT CERTIFICATES.
package main

import (
	"os"
	"strconv"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/webhooks"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "training-operator")
		os.Exit(1)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	port, err := strconv.Atoi(os.Args[1])
	must(err)
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflow.AddToScheme(scheme))
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "127.0.0.1:" + os.Args[2],
		WebhookServer:          webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Args[3]}),
	})
	must(err)
	for _, kind := range []string{kubeflow.PyTorchJobKind, kubeflow.JAXJobKind} {
		must(controllers.SupportedSchemeReconciler[kind](manager, common.GenNonGangSchedulerSetupFunc(), 1))
		must(webhooks.SupportedSchemeWebhook[kind](manager))
	}
	must(manager.AddHealthzCheck("healthz", healthz.Ping))
	must(manager.AddReadyzCheck("readyz", manager.GetWebhookServer().StartedChecker()))
	must(manager.Start(ctrl.SetupSignalHandler()))
}
