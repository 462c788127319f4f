package kubernetes {
    baseProviderName = "kubernetes"

}

resource my-pod "kubernetes:core/v1:Pod" {
    apiVersion = "v1"
    kind = "Pod"
    metadata ={

        labels ={
"app.kubernetes.io/name" = "web"},

        name = "web"
    }
    spec ={

        containers =[{

                image = "web:1",

                name = "web",

                ports =[{
containerPort = 80}]
            }],

        hostIPC = false,

        tolerations =[]
    }
options {
protect =true

dependsOn =[cluster-role]

}

}
