// A class map of every scene of a folder, by Nextflow:
//
//   nextflow run jobs/workflows/main.nf --scenes 'tiles/*.tif' --job template.toml --runs $PWD/runs
//
// Each attempt of a process has a working directory of its own. The run directory lies outside of them, so that the next
// attempt goes on where the last one was stopped.

nextflow.enable.dsl = 2

params.scenes = 'tiles/*.tif'
params.job = 'template.toml'
params.runs = "${launchDir}/runs"
params.maps = "${launchDir}/maps"

process MAP_SCENE {
    tag "${scene.baseName}"
    cpus 1
    memory '4 GB'
    publishDir params.maps, mode: 'copy'

    // 1: anything else, 130: stopped, 137: killed, 143: ended. What was given cannot work (2) is not repeated.
    errorStrategy { task.exitStatus in [1, 130, 137, 143] ? 'retry' : 'ignore' }
    maxRetries 2

    input:
    path scene
    path job

    output:
    path "${scene.baseName}.json"

    script:
    // Half of the process's memory: limits.memory is anonymous memory, and the queue counts more.
    """
    status=0
    eigenscape run "${job}" --set "scene.path=\$(readlink -f '${scene}')" --run-dir "${params.runs}/${scene.baseName}" \\
        --set limits.memory=${task.memory.toMega().intdiv(2)}MiB --set limits.threads=${task.cpus} --json \\
        > out.json || status=\$?
    # 3: not converged, results kept.
    case \$status in
        0 | 3) tail -n 1 out.json > "${scene.baseName}.json" ;;
        *) exit \$status ;;
    esac
    """
}

workflow {
    MAP_SCENE(Channel.fromPath(params.scenes), file(params.job))
}
