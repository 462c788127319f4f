H100 = "Standard_ND96isr_H100_v5"
H200 = "Standard_ND96isr_H200_v5"
T4 = "Standard_NC4as_T4_v3"
