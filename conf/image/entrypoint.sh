#!/bin/bash
# Runs the commands `driver` and `executor` that Spark gives to pods of Kubernetes, or any other command, under an init.
set -euo pipefail

# Java asks for the name of the user.
if ! getent passwd "$(id -u)" > /dev/null; then
    if [[ -w /etc/passwd ]]; then
        printf 'spark:x:%s:%s::%s:/bin/false\n' "$(id -u)" "$(id -g)" "$HOME" >> /etc/passwd
    else
        echo "entrypoint.sh: user $(id -u) has no name in /etc/passwd, and cannot add one. Spark may fail. Remedy: run as" \
            "group 0, for example --user $(id -u):0, with a writable /etc/passwd" >&2
    fi
fi

case "${1:-}" in
driver)
    shift
    set -- spark-submit --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
executor)
    # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...: one option each, in numeric order
    options=() number=0
    while name="SPARK_JAVA_OPT_$number" && [[ -n "${!name:-}" ]]; do
        options+=("${!name}") number=$((number + 1))
    done
    path="${SPARK_CONF_DIR:-$SPARK_HOME/conf}${HADOOP_CONF_DIR:+:$HADOOP_CONF_DIR}"
    set -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "$path${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}:$SPARK_HOME/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
esac
exec tini -- "$@"
