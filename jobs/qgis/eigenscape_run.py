"""A script for the Processing toolbox of QGIS (3.16 and later): a class map of a scene by eigenscape.

QGIS has its own Python, and eigenscape stays in another one: the script calls the command. See README.md
beside it.
"""

import json
import os
import shutil
import subprocess

from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingOutputRasterLayer,
    QgsProcessingOutputVectorLayer,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterFolderDestination,
    QgsProcessingParameterMapLayer,
    QgsProcessingParameterRasterLayer,
    QgsProcessingParameterString,
)

FORMATS = ["geotiff", "png", "qml"]
# What QGIS sets for its own libraries would be found by those of the command.
OWN = (
    "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "GDAL_DATA", "GDAL_DRIVER_PATH", "PROJ_LIB", "PROJ_DATA",
)  # fmt: skip


class EigenscapeRun(QgsProcessingAlgorithm):
    """Scene and labels in, class map, confidence and polygons out."""

    SCENE, LABELS, FIELD, SETTINGS, COMMAND = "SCENE", "LABELS", "FIELD", "SETTINGS", "COMMAND"
    POLYGONS, OUTPUT = "POLYGONS", "OUTPUT"
    CLASS_MAP, CONFIDENCE, CLASSES = "CLASS_MAP", "CONFIDENCE", "CLASS_POLYGONS"

    def createInstance(self):
        return EigenscapeRun()

    def name(self):
        return "eigenscape_run"

    def displayName(self):
        return "Class map by eigenmaps (eigenscape)"

    def group(self):
        return "Hyperspectral"

    def groupId(self):
        return "hyperspectral"

    def shortHelpString(self):
        return (
            "Runs eigenscape on a scene. Labels are a raster of class numbers, or points or polygons with a "
            "field of classes; without labels, set a method that needs none, such as "
            'learn.method="spectral-clustering". Settings are keys of a job file as KEY=VALUE, separated by '
            "semicolons. The same settings go on in the same folder where an earlier run was stopped."
        )

    def initAlgorithm(self, config=None):
        vector = QgsProcessing.TypeVectorAnyGeometry
        self.addParameter(QgsProcessingParameterRasterLayer(self.SCENE, "Scene"))
        self.addParameter(
            QgsProcessingParameterMapLayer(
                self.LABELS, "Labels", optional=True, types=[QgsProcessing.TypeRaster, vector]
            )
        )
        self.addParameter(
            QgsProcessingParameterString(self.FIELD, "Field of the classes", optional=True)
        )
        self.addParameter(
            QgsProcessingParameterString(self.SETTINGS, "Settings", optional=True, multiLine=True)
        )
        self.addParameter(
            QgsProcessingParameterBoolean(self.POLYGONS, "Polygons too", defaultValue=False)
        )
        command = QgsProcessingParameterString(self.COMMAND, "Command", defaultValue="eigenscape")
        command.setFlags(command.flags() | QgsProcessingParameterDefinition.FlagAdvanced)
        self.addParameter(command)
        self.addParameter(QgsProcessingParameterFolderDestination(self.OUTPUT, "Run folder"))
        self.addOutput(QgsProcessingOutputRasterLayer(self.CLASS_MAP, "Class map"))
        self.addOutput(QgsProcessingOutputRasterLayer(self.CONFIDENCE, "Confidence"))
        self.addOutput(QgsProcessingOutputVectorLayer(self.CLASSES, "Polygons of the classes"))

    def processAlgorithm(self, parameters, context, feedback):
        folder = self.parameterAsString(parameters, self.OUTPUT, context)
        os.makedirs(folder, exist_ok=True)
        arguments = self._arguments(parameters, context, folder)
        outputs = self._run(arguments, feedback)["outputs"]
        found = {self.OUTPUT: folder}
        for key, name, label in (
            (self.CLASS_MAP, "class_map", "Class map"),
            (self.CONFIDENCE, "confidence", None),
            (self.CLASSES, "class_polygons", "Polygons of the classes"),
        ):
            if name in outputs:
                found[key] = outputs[name]
                if label and context.project() is not None:
                    details = QgsProcessingContext.LayerDetails(label, context.project(), key)
                    context.addLayerToLoadOnCompletion(outputs[name], details)
        return found

    def _arguments(self, parameters, context, folder):
        """Return the command and its arguments; a job file of the scene is written into the folder."""
        command = shutil.which(self.parameterAsString(parameters, self.COMMAND, context))
        if command is None:
            raise QgsProcessingException(
                "The command eigenscape is not found. Give its whole path (`which eigenscape` in the "
                "environment where it is installed)."
            )
        formats = [*FORMATS, *["gpkg"] * self.parameterAsBool(parameters, self.POLYGONS, context)]
        scene = {"path": _file_of(self.parameterAsRasterLayer(parameters, self.SCENE, context))}
        labels = self.parameterAsLayer(parameters, self.LABELS, context)
        if labels is not None:
            scene["labels"] = _file_of(labels)
        if field := self.parameterAsString(parameters, self.FIELD, context):
            scene["labels_field"] = field
        lines = [f"{key} = {json.dumps(value)}" for key, value in scene.items()]
        job = os.path.join(folder, "qgis.toml")
        with open(job, "w", encoding="utf-8") as file:
            file.write(
                "[scene]\n" + "\n".join(lines) + f"\n[output]\nformats = {json.dumps(formats)}\n"
            )
        arguments = [command, "run", job, "--run-dir", os.path.join(folder, "run"), "--json"]
        settings = self.parameterAsString(parameters, self.SETTINGS, context) or ""
        for setting in filter(None, map(str.strip, settings.replace("\n", ";").split(";"))):
            arguments += ["--set", setting]
        return arguments

    def _run(self, arguments, feedback):
        """Run the command, show what it says, end it when the user cancels; return its result."""
        feedback.pushCommandInfo(" ".join(arguments))
        environment = {key: value for key, value in os.environ.items() if key not in OWN}
        result = os.path.join(
            os.path.dirname(arguments[arguments.index("--run-dir") + 1]), "qgis.json"
        )
        with open(result, "w+", encoding="utf-8") as answer:
            process = subprocess.Popen(
                arguments, stdout=answer, stderr=subprocess.PIPE, env=environment, encoding="utf-8",
                errors="replace",
            )  # fmt: skip
            said = []
            for line in process.stderr:
                said.append(line.rstrip())
                feedback.pushInfo(said[-1])
                if feedback.isCanceled():
                    process.terminate()
            status = process.wait()
            answer.seek(0)
            text = answer.read()
        if feedback.isCanceled():
            raise QgsProcessingException("Cancelled; the same settings go on where it stopped.")
        # 3 is a run that did not converge, and has left its files.
        if status not in (0, 3):
            raise QgsProcessingException("\n".join(said[-5:]) or f"eigenscape ended with {status}")
        return json.loads(text)


def _file_of(layer):
    """Return the file of a layer, without the name of a layer in it."""
    source = layer.source().split("|")[0]
    if not os.path.exists(source):
        raise QgsProcessingException(
            f"{layer.name()}: eigenscape reads files, and this is {source}."
        )
    return source
