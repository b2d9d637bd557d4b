#!/bin/bash
# Starts what Spark tells a pod of Kubernetes, "driver ..." or "executor", or else the given command, under an init.
set -euo pipefail

if ! getent passwd "$(id -u)" > /dev/null; then
    printf 'spark:x:%s:%s::%s:/bin/false\n' "$(id -u)" "$(id -g)" "$HOME" >> /etc/passwd
fi

case "${1:-}" in
driver)
    shift
    set -- spark-submit --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
executor)
    # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...: an option each, in this order
    options=() number=0
    while name="SPARK_JAVA_OPT_$number" && [[ -n "${!name:-}" ]]; do
        options+=("${!name}") number=$((number + 1))
    done
    set -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
esac
exec tini -- "$@"
